"""One round: growth, sampling, evaluation, callbacks."""
