"""Boosting loops: which trees build on which."""
