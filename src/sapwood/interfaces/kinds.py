"""Which estimators can predict with a model; it needs no scikit-learn.

In: a booster. Out: names of estimators.
"""

from sapwood.device import host
from sapwood.model.booster import Booster
from sapwood.objective.distributions import PREFIX
from sapwood.objective.ranking import LOSSES

# the entry of a model's `params` with what SapwoodSurvival has learned beside the trees
SURVIVAL = "survival"
# of objectives for two classes, which regressors have too
ANY_LABELS = ("0 or 1", "a number from 0 to 1")
WORDS = {  # what the model of an estimator is
    "SapwoodDistribution": "a distribution",
    "SapwoodSurvival": "a model of survival",
    "SapwoodClassifier": "a model of classes",
    "SapwoodRanker": "a ranking",
    "SapwoodRegressor": "a model of numbers",
}


def estimators_of(booster: Booster) -> tuple[str, ...]:
    """The estimators that predict with a model, the usual one first; of a user's
    objective more than one may.
    """
    name = booster.objective
    about = host.objectives().get(booster.objective)
    if name.startswith(PREFIX):
        return ("SapwoodDistribution",)
    if SURVIVAL in booster.params:
        return ("SapwoodSurvival",)
    if booster.classes is not None or (
        about is not None and about["labels"] == "a class index"
    ):
        return ("SapwoodClassifier",)
    if name in LOSSES:
        return ("SapwoodRanker",)
    numbers = ("SapwoodRegressor", "SapwoodRanker")
    return (
        numbers
        if about is not None and about["labels"] not in ANY_LABELS
        else (*numbers, "SapwoodClassifier")
    )
