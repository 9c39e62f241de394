"""What must hold of a model before any part of it is used.

In: a booster, made by training, a reader or a file. Out: nothing, or a ModelFormatError
that says what is wrong.
"""

import math
from typing import TYPE_CHECKING

import numpy as np

from sapwood.data import derived
from sapwood.device import host
from sapwood.errors import ModelFormatError

if TYPE_CHECKING:
    from sapwood.model.booster import Booster

CUSTOM = "custom"  # the link of a model whose predictions a user's function makes
COUPLED = ("softmax", "one_vs_all")  # links that need several scores, one a class


def check_model(booster: "Booster") -> None:
    """Raise unless the parts of a model fit together; runs before any part is used."""
    known = host.objectives()
    about = known.get(booster.objective)  # None for a user's own
    links = (
        [about["link"], *(["ascending"] if booster.objective == "quantile" else [])]
        if about
        else sorted({entry["link"] for entry in known.values()} | {CUSTOM})
    )
    own_fields = list(about["fields"]) if about else []
    if not booster.objective:
        raise ModelFormatError("objective has no name.")
    if booster.link not in links:
        raise ModelFormatError(
            f"objective {booster.objective} has link {' or '.join(links)}, not {booster.link!r}."
        )
    if booster.transform is not None and booster.link != CUSTOM:
        raise ModelFormatError(
            f"transform is for the link {CUSTOM!r}; the model has link {booster.link!r}."
        )
    if not booster.feature_names or len(set(booster.feature_names)) < booster.n_columns:
        raise ModelFormatError(
            "feature_names must be one different name for each of at least one column."
        )
    if (
        booster.base.ndim != 1
        or not booster.n_outputs
        or not np.isfinite(booster.base).all()
    ):
        raise ModelFormatError(
            f"base must be one finite score for each output; it is {booster.base}."
        )
    levels = [
        one if isinstance(one, list) else [one] for one in booster.fields.values()
    ]
    finite = all(
        len(one) in (1, booster.n_outputs) and all(map(math.isfinite, one))
        for one in levels
    )
    if set(booster.fields) != set(own_fields) or not finite:
        raise ModelFormatError(
            f"fields {dict(booster.fields)} are not the finite {own_fields} of the objective."
        )
    if booster.link in COUPLED and booster.n_outputs == 1:
        raise ModelFormatError(f"link {booster.link} does not fit a single output.")
    n_parallel = booster.params.get("n_parallel_trees", 1)
    if type(n_parallel) is not int or n_parallel < 1:
        raise ModelFormatError(
            f"n_parallel_trees={n_parallel!r} is not a number of trees."
        )
    if not all(0 <= column < booster.n_columns for column in booster.categories):
        raise ModelFormatError(
            f"categories are of columns {list(booster.categories)}, of {booster.n_columns} in all."
        )
    if (
        flaw := derived.flaw(booster.times, booster.n_columns, booster.categories)
    ) is not None:
        raise ModelFormatError(
            f"The columns of times of the model break the rule '{flaw}'."
        )
    n_bins = {
        column: dictionary.n_bins for column, dictionary in booster.categories.items()
    }
    if (
        flaw := booster.crosses.flaw(booster.n_columns, booster.categories)
    ) is not None:
        raise ModelFormatError(f"The crosses of the model break the rule '{flaw}'.")
    booster.combinations.validate(booster.n_numbered, booster.categories)
    n_bins |= booster.combinations.n_bins(booster.n_numbered)
    booster.trees.validate(booster.n_internal, booster.n_outputs, n_bins)
    if booster.trees.n_trees % (booster.n_outputs * n_parallel):
        raise ModelFormatError(
            f"{booster.trees.n_trees} trees are not a whole number of rounds of {n_parallel} trees."
        )
    if (
        booster.best_round is not None
        and not 0 <= booster.best_round <= booster.n_rounds
    ):
        raise ModelFormatError(
            f"best_round={booster.best_round} is beyond the {booster.n_rounds} rounds of the model."
        )
    if booster.classes is not None:
        n_classes = max(booster.n_outputs, 2)
        # all rows were of one class
        n_classes = 1 if n_classes == 2 and len(booster.classes) == 1 else n_classes
        fit = (
            booster.classes.shape == (n_classes,)
            and len(set(booster.classes.tolist())) == n_classes
        )
        if not fit or (about and about["labels"] not in ("0 or 1", "a class index")):
            raise ModelFormatError(
                f"{booster.objective} has {n_classes} different classes, not {booster.classes}."
            )
