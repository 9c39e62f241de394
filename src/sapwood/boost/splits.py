"""Rows held out for early stopping, and the folds of a cross-validation.

In: a seed and facts about all rows. Out: masks or fold numbers; a draw depends on a
row's position only (NUMERICS 1).
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.data.dataset import Dataset
from sapwood.data.dealt import total
from sapwood.device import host
from sapwood.errors import DataError, ParameterError, warn
from sapwood.params.types import flag, is_integer

Floats = NDArray[np.float64]
Groups = NDArray[np.int32]
Mask = NDArray[np.bool_]
Counts = NDArray[np.int64]


def holdout_of(
    params: Mapping[str, Any], data: Dataset, classes: Floats | None, turn: int = 0
) -> Mask:
    """Mark the training rows that early stopping holds out, as resolved parameters say;
    other rows in other turns.
    """
    seed, fraction, last = (
        params[name] for name in ("random_state", "validation_fraction", "has_time")
    )
    weight = data.of_all_holders(data.weight)
    by_class = data.of_all_holders(classes)
    held = holdout(
        seed, fraction, data.n_total, weight, by_class, data.group, last=last, turn=turn
    )
    return data.of_this_holder(held)


def say_holdout(held: Mask, data: Dataset) -> None:
    """Say that rows are held out which nobody has spoken of: where XGBoost and LightGBM
    raise.
    """
    n_held = total(data.reduce, int(held.sum()))
    warn(
        f"early stopping has no validation set: {n_held:,} of {data.n_total:,} rows are held out for it. Give "
        "one, or set validation_fraction to say that this is meant."
    )


def folds_of(
    params: Mapping[str, Any],
    data: Dataset,
    classes: Floats | None,
    n_folds: int,
    given: Any,
) -> list[tuple[Counts, Counts]]:
    """How often each row is trained on, and how often it is measured, fold by fold."""
    if given is not None:
        counts = given_folds(given, data)
    else:
        by_class = data.of_all_holders(classes)
        fold = folds(
            params["random_state"], n_folds, data.n_total, by_class, data.group
        )
        counts = [
            ((fold != which).astype(np.int64), (fold == which).astype(np.int64))
            for which in range(n_folds)
        ]
    return [
        (data.of_this_holder(trained), data.of_this_holder(measured))
        for trained, measured in counts
    ]


def holdout(
    seed: int,
    fraction: float,
    n_rows: int,
    weight: Floats | None = None,
    classes: Floats | None = None,
    group: Groups | None = None,
    *,
    last: bool = False,
    turn: int = 0,
) -> Mask:
    """Mark the rows that early stopping holds out: those of positive weight with the
    smallest draws.

    ``fraction`` of the rows of positive weight, rounded half up, and at least one row.
    Each of ``classes`` gives its share, to within a row, and keeps a row. With
    ``group``, numbers from 0, whole groups are drawn until they have
    that many rows, but none of more than half of all rows. With ``last`` nothing is
    drawn: the last rows, or groups, are held out. Other turns have other draws.
    """
    candidates = np.arange(n_rows) if weight is None else np.flatnonzero(weight)
    count = max(1, int(fraction * len(candidates) + 0.5))

    def draw(n: int) -> NDArray[Any]:
        return np.arange(n)[::-1] if last else host.draw(seed, host.HOLDOUT, turn, 0, n)

    if group is not None:
        sizes = np.bincount(group[candidates], minlength=int(group.max()) + 1)
        order = np.argsort(draw(len(sizes)), kind="stable")
        order = order[sizes[order] > 0]
        n_groups = len(order)
        if not last:  # a group of more than half of the rows is for training
            order = (
                order[2 * sizes[order] <= len(candidates)] if n_groups > 1 else order
            )
        enough = int(np.searchsorted(np.cumsum(sizes[order]), count)) + 1
        chosen = order[: min(enough, max(1, n_groups - 1))]
        if len(chosen) == n_groups:
            raise DataError(
                f"validation_fraction={fraction:g} of {n_groups} groups with rows of positive weight leaves none to "
                "train on; give a validation set, or data without group."
            )
        held: Mask = np.isin(group, chosen)
        return held if weight is None else held & (weight > 0)
    if count >= len(candidates):
        raise DataError(
            f"validation_fraction={fraction:g} of {len(candidates)} rows of positive weight leaves none to train on; "
            "give a validation set or more rows."
        )
    draws = draw(n_rows)[candidates]
    mask = np.zeros(n_rows, np.bool_)
    if classes is None or last:
        mask[candidates[np.argsort(draws, kind="stable")[:count]]] = True
    else:  # evenly from all rows, class after class
        order = np.lexsort((draws, classes[candidates]))
        at = np.arange(len(candidates))
        mask[candidates[order[(at + 1) * count // len(at) > at * count // len(at)]]] = (
            True
        )
    if classes is not None:
        own = classes[candidates]
        # of a class that would not be learned the last stays
        for gone in np.setdiff1d(own, own[~mask[candidates]]):
            rows = np.flatnonzero(own == gone)
            mask[candidates[rows[np.argmax(draws[rows])]]] = False
        if not mask.any():
            raise DataError(
                "no class has two rows of positive weight, one to be held out; give a validation set."
            )
    return mask


def folds(
    seed: int,
    n_folds: int,
    n_rows: int,
    classes: Floats | None = None,
    group: Groups | None = None,
) -> NDArray[np.int64]:
    """Deal the rows to folds whose sizes differ by at most one, by the rank of their
    draws: (n_rows) fold numbers.

    With ``classes`` the folds' shares of each class differ by at most one row too. With
    ``group``, numbers from 0, whole groups are dealt instead, whatever their sizes and
    classes.
    """
    if group is not None:
        n_groups = int(group.max()) + 1
        if is_integer(n_folds) and n_folds > n_groups:
            raise ParameterError(
                f"n_folds={n_folds} does not suit {n_groups} groups; choose 2..{n_groups}."
            )
        return folds(seed, n_folds, n_groups)[group]
    if not is_integer(n_folds) or not 2 <= n_folds <= n_rows:
        wrong = (
            f"does not suit {n_rows} rows"
            if is_integer(n_folds)
            else "is not an integer"
        )
        raise ParameterError(f"n_folds={n_folds!r} {wrong}; choose 2..{n_rows}.")
    fold = np.empty(n_rows, np.int64)
    by_class = np.zeros(n_rows) if classes is None else classes
    fold[np.lexsort((host.draw(seed, host.FOLDS, 0, 0, n_rows), by_class))] = (
        np.arange(n_rows) % n_folds
    )
    return fold


def check_fold_words(
    dealt: bool,
    classes: Floats | None,
    group: Groups | None,
    *,
    stratified: bool | None,
    shuffle: bool | None,
) -> None:
    """Raise where the peers' words `stratified` and `shuffle` do not describe the
    folds.

    ``dealt``: `folds` deals them; else they are the user's own.
    """
    by_class = classes is not None and group is None
    how = (
        "evenly by class"
        if by_class
        else "whatever their labels"
        if group is None
        else "as whole groups"
    )
    for name, asked, is_so in (
        ("stratified", stratified, by_class),
        ("shuffle", shuffle, True),
    ):
        if asked is not None and not dealt:
            raise ParameterError(
                f"{name}={asked!r} says how folds are dealt, but folds are given; leave it out."
            )
        if asked is not None and flag.check(f"{name}={asked!r}", asked) != is_so:
            raise ParameterError(
                f"{name}={asked!r} is not available: rows are dealt at random, {how}. Leave it out, or give folds, "
                "such as sklearn.model_selection.KFold(5)."
            )


def check_whole_groups(data: Dataset, folds: list[tuple[Counts, Counts]]) -> None:
    """Raise where a fold splits a group: a ranking needs all rows of a group on one
    side.
    """
    assert data.group is not None
    sizes = np.bincount(data.group)
    for at, (trained, _) in enumerate(folds):
        kept = np.bincount(data.group, trained > 0)
        if ((kept > 0) & (kept < sizes)).any():
            raise ParameterError(
                f"fold {at} splits a group; use scikit-learn's GroupKFold, or leave folds out."
            )


def given_folds(folds: Any, data: Dataset) -> list[tuple[Counts, Counts]]:
    """Folds of the user: pairs (train, test) of positions of rows, or a splitter of
    scikit-learn.

    For each fold, how often every row of all holders is trained on and measured: a row
    given twice counts twice.
    """
    n_rows = data.n_total
    if hasattr(folds, "split"):
        folds = folds.split(
            np.zeros((n_rows, 1)), data.of_all_holders(data.label), data.group
        )
    if not isinstance(folds, Iterable):
        raise ParameterError(
            f"folds={folds!r} is neither a list of pairs (train, test) nor has it a split method."
        )
    found = []
    for at, pair in enumerate(folds):
        try:
            counts = tuple(_counts(np.asarray(rows), n_rows) for rows in pair)
            trained, measured = counts
        except (TypeError, ValueError, IndexError) as cause:
            raise ParameterError(
                f"fold {at} is not a pair (train, test) of positions of {n_rows} rows: {cause}."
            ) from cause
        if (
            not trained.any()
            or not measured.any()
            or ((trained > 0) & (measured > 0)).any()
        ):
            raise ParameterError(
                f"fold {at} trains on no row, measures none, or has a row in both parts."
            )
        found.append((trained, measured))
    if not found:
        raise ParameterError(
            "folds is empty; give at least one pair (train, test), or leave it out."
        )
    return found


def _counts(rows: NDArray[Any], n_rows: int) -> Counts:
    """How often each row is among these positions, or whether it is in this mask."""
    if rows.dtype == np.bool_:
        rows = np.flatnonzero(np.ones(n_rows, np.bool_) & rows)
    return np.bincount(np.arange(n_rows)[rows], minlength=n_rows)
