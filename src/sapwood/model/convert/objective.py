"""What a foreign model predicts, in our words.

In: the peer's objective, and ours or a link for it. Out: the fields of a `Booster` that
say so.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from sapwood.device import host
from sapwood.model.booster import Booster
from sapwood.model.consistency import CUSTOM


def described(
    library: str, objective: str, ours: str | Callable[..., Any]
) -> dict[str, Any]:
    """The ``objective``, ``fields``, ``link`` and ``transform`` of a booster.

    library, objective: str; whose it is, and its name there: the booster's where we
    have none of our own for it.
    ours: str or callable; an objective of ours, the name of a link, or the function
    from raw scores to predictions.
    """
    if ours in host.objectives():
        return {
            "objective": ours,
            "fields": {},
            "link": host.objectives()[ours]["link"],
        }
    link = (
        {"link": ours} if isinstance(ours, str) else {"link": CUSTOM, "transform": ours}
    )
    return {"objective": f"{library}:{objective}", "fields": {}, **link}


def with_classes(booster: Booster, classes: Any) -> Booster:
    """The model with the labels of its classes, where it has any and its scores are of
    them.
    """
    labels = host.objectives().get(booster.objective, {"labels": "a class index"})[
        "labels"
    ]
    if (
        classes is None
        or len(classes) != max(booster.n_outputs, 2)
        or labels not in ("0 or 1", "a class index")
    ):
        return booster
    return replace(booster, classes=np.asarray(classes))
