"""The report: one page about a model and the rows it is judged on.

In: a model, rows and labels. Out: HTML that needs nothing else; scores with intervals,
for the command line too.
"""

import os
from typing import Any

from sapwood.errors import DataError, ParameterError
from sapwood.interfaces.kinds import estimators_of
from sapwood.model.booster import Booster
from sapwood.report import page
from sapwood.system import kinds, writing

__all__ = ["refuse_other", "report"]

INSTEAD = {  # models whose predictions are neither numbers nor classes
    "SapwoodDistribution": "a distribution: score, and sapwood.metric.nll, crps, coverage and pit tell how good it is, "
    "explain(X) what moves each parameter",
    "SapwoodSurvival": "a model of survival: score, and sapwood.metric.integrated_brier, concordance_ipcw and "
    "dynamic_auc tell how good it is, booster_.explain(X) what moves its scores",
}


def report(
    booster: Booster,
    X: Any,
    y: Any,
    path: str | os.PathLike[str] | None = None,
    *,
    train: tuple[Any, Any] | None = None,
    title: str | None = None,
    force: bool = False,
) -> str:
    """Make one HTML page about the model and the rows it is judged on; see
    docs/report.md.

    Parameters
    ----------
    booster : Booster
    X, y : table and labels
        Rows that were not trained on.
    path : str or path-like, optional
        The file to write.
    train : (X, y), optional
        The training rows: for their learning curve, drift, and rows that occur in both.
    title : str, optional
        The title of the page.
    force : bool
        Replace a file that is no report.

    Returns
    -------
    str
        The page, which loads nothing from anywhere.
    """
    refuse_other(booster)
    if path is not None:
        kinds.check(path, kinds.REPORT, force=force)
    if booster.classes is not None and len(booster.classes) == 1:
        raise DataError(
            f"the model knows one class only, {booster.classes[0]}: there is nothing to report."
        )
    text = page.make(booster, X, y, train=train, title=title or "Model report")
    if path is not None:
        # a lone surrogate has no UTF-8
        writing.write(path, text.encode(errors="backslashreplace"))
    return text


def refuse_other(booster: Booster) -> None:
    """Raise for a model that predicts neither numbers nor classes."""
    if (kind := estimators_of(booster)[0]) in INSTEAD:
        raise ParameterError(
            f"a report is about numbers or classes; this is {INSTEAD[kind]}."
        )
