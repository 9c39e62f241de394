"""The automatic learning rate: what CatBoost's authors fitted to many data sets.

In: the objective, the number of rows and rounds. Out: a rate.

Source: catboost/libs/train_lib/options_helper.cpp; rate = exp(b) * rows^a * (rounds /
1000)^c, at most 0.5.
"""

from sapwood.device import elementary

# for all objectives; for those that were not fitted
MAX_RATE = 0.5
OTHERS = 0.03
# objective, whether rounds are chosen by validation rows, whether scores start at the
# mean -> a, b, c
_FITTED = {
    ("logistic", True, True): (0.246, -5.127, -0.451),
    ("logistic", False, True): (0.408, -7.299, -0.928),
    ("logistic", True, False): (0.247, -5.158, -0.435),
    ("logistic", False, False): (0.427, -7.525, -0.917),
    ("softmax", True, False): (0.02, -2.364, -0.382),
    ("softmax", False, False): (0.051, -2.889, -0.845),
    ("squared_error", True, True): (0.157, -4.062, -0.61),
    ("squared_error", False, True): (0.158, -4.287, -0.813),
    ("squared_error", True, False): (0.189, -4.383, -0.623),
    ("squared_error", False, False): (0.178, -4.473, -0.76),
}


def automatic(
    objective: str, n_rows: int, n_rounds: int, watched: bool, from_mean: bool
) -> float:
    """Find the learning rate, with 6 decimals.

    ``watched``: validation rows choose the number of rounds. ``from_mean``: scores
    start at the constant that minimises the loss.
    """
    found = _FITTED.get((objective, watched, from_mean and objective != "softmax"))
    if found is None:
        return OTHERS
    a, b, c = found
    exponent = (
        b
        + a * float(elementary.log(float(n_rows)))
        + c * float(elementary.log(n_rounds / 1000))
    )
    return round(min(MAX_RATE, float(elementary.exp(exponent))), 6)
