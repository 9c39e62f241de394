"""Who is asked: rows held out for validation, rows of a fold, rows of a round.

In: a seed and the number of rows. Out: masks that depend on each row's position and on nothing else (NUMERICS 1).
"""

import warnings
from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.data.dataset import Dataset
from sapwood.device import cpu
from sapwood.errors import DataError, ParameterError, suggest
from sapwood.params import called, defaults, rates
from sapwood.params.types import Flag, class_name, whole

HOLDOUT, FOLDS = 6, 7  # purposes of a draw
NO_SAMPLER = {"none": {"fields": [], "shares": False, "by_gradient": False}}  # beside the core's samplers


def check(params: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """Raise unless the parameters of sampling go together.

    Parameters
    ----------
    params : mapping
        Resolved parameters.
    given : mapping
        What the user called them.
    """
    known, name = cpu.samplers() | NO_SAMPLER, params["sampling"]
    if name not in known:
        raise ParameterError(f"sampling={name!r} is unknown; {suggest(name, known)}")
    about, usual = known[name], defaults()
    own = {one: [*of["fields"], *(["subsample"] if of["shares"] else [])] for one, of in known.items()}
    for other in sorted({*chain(*own.values())}.difference(own[name])):
        if params[other] != usual[other]:
            owners = " or ".join(repr(one) for one in own if other in own[one])
            raise ParameterError(
                f"{called(other, given)} is for sampling={owners}, not for {name!r}; set that, or leave it out."
            )
    if about["by_gradient"]:
        for other in ("subsample_freq", "sampling_unit"):
            if params[other] != usual[other]:
                raise ParameterError(
                    f"{called(other, given)} needs a draw that does not look at gradients; choose "
                    f"sampling='uniform' or 'bayesian', not {name!r}."
                )
        if about["shares"] and params["subsample"] == 1:
            raise ParameterError(f"sampling={name!r} takes a share of the rows; set subsample below 1, such as 0.8.")
    if params["subsample_by_class"] is not None and (name, params["sampling_unit"]) != ("uniform", "row"):
        raise ParameterError(
            "subsample_by_class draws rows by their class; choose sampling='uniform' and sampling_unit='row'."
        )
    if params["top_rate"] + params["other_rate"] > 1:
        raise ParameterError(
            f"top_rate={params['top_rate']:g} and other_rate={params['other_rate']:g} are more than all rows; choose "
            "shares that add up to at most 1."
        )


def prepare(
    trainer: cpu.Trainer,
    params: Mapping[str, Any],
    classes: NDArray[np.float64] | None,
    group: NDArray[np.int32] | None,
) -> None:
    """Tell a trainer who will be asked.

    Parameters
    ----------
    trainer : Trainer
        The rows.
    params : mapping
        Resolved parameters that `check` let pass.
    classes : (n_rows) float64, optional
        The class of every row, where labels are classes.
    group : (n_rows) int32, optional
        The group of every row.
    """
    name, by_class, share = params["sampling"], params["subsample_by_class"], None
    if by_class is not None:
        if classes is None:
            raise ParameterError("subsample_by_class needs labels that are classes; use subsample.")
        place = {class_name(one): one for one in np.unique(classes)}
        share = np.full(len(classes), params["subsample"])
        for one, part in by_class.items():
            if one not in place:
                raise ParameterError(f"subsample_by_class has a class {one!r}; {suggest(one, place)}")
            share[classes == place[one]] = part
    unit = group if params["sampling_unit"] == "group" else None
    if unit is None and params["sampling_unit"] == "group":
        raise DataError("sampling_unit='group' needs groups; make the data with Dataset(X, label=y, group=...).")
    fields = {field: params[field] for field in (cpu.samplers() | NO_SAMPLER)[name]["fields"]}
    if fields.get("mvs_reg") == "auto":
        fields["mvs_reg"] = -1.0
    trainer.set_sampler("uniform" if name in NO_SAMPLER else name, fields, share, unit)


def _warm(params: Mapping[str, Any], index: int, rate: Callable[[int], float]) -> bool:
    """Whether a round of goss takes all rows, whose gradients do not yet tell them apart; in a forest they never do."""
    return params["sampling"] == "goss" and params["boosting"] != "forest" and index < int(1 / rate(index))


def warn_of_no_draw(params: Mapping[str, Any], rounds: range) -> None:
    """Say so where goss takes all rows in every round.

    Parameters
    ----------
    params : mapping
        Resolved parameters.
    rounds : range
        Numbers of the rounds.
    """
    rate = params["learning_rate"]
    if not callable(rate) and all(_warm(params, index, rates(rate)) for index in rounds):
        warnings.warn(
            f"sampling='goss' takes all rows in its first 1 / learning_rate rounds, and there are {rounds.stop} in "
            "all: it draws none. Train for more rounds, raise learning_rate, or leave it out.",
            UserWarning,
            stacklevel=4,
        )


def rows(
    trainer: cpu.Trainer, params: Mapping[str, Any], index: int, rate: Callable[[int], float], copy: int = 0
) -> None:
    """Choose the rows that grow the trees of one round; the core draws them, as NUMERICS 6 and 10 say.

    Parameters
    ----------
    trainer : Trainer
        The rows, their gradients computed.
    params : mapping
        Resolved parameters.
    index : int
        Number of the round.
    rate : callable
        The learning rate of a round: the first 1 / rate rounds of goss take all rows.
    copy : int
        Which of the `n_parallel_trees` of the round: each has its own draws.
    """
    turn = (index - index % params["subsample_freq"]) * params["n_parallel_trees"] + copy
    trainer.sample(params["random_state"], turn, None if _warm(params, index, rate) else params["subsample"])


def holdout(
    seed: int,
    fraction: float,
    n_rows: int,
    weight: NDArray[np.float64] | None = None,
    classes: NDArray[np.float64] | None = None,
    group: NDArray[np.int32] | None = None,
    *,
    last: bool = False,
) -> NDArray[np.bool_]:
    """Mark the rows that early stopping holds out: those of positive weight with the smallest draws.

    Parameters
    ----------
    seed : int
        The seed of the fit.
    fraction : float
        Share of the rows of positive weight, rounded half up, and at least one row.
    n_rows : int
        Number of rows.
    weight : (n_rows) float64, optional
        Rows of weight 0 are nowhere, so neither here.
    classes : (n_rows) float64, optional
        The class of every row: each gives its share, to within a row, and keeps one at least.
    group : (n_rows) int32, optional
        The group of every row, from 0: instead of rows, groups are drawn, up to the one that brings their rows to the
        share, whatever their classes.
    last : bool
        Nothing is drawn: the last rows, or groups, are held out, whatever the share of their classes.

    Returns
    -------
    (n_rows) bool
    """
    candidates = np.arange(n_rows) if weight is None else np.flatnonzero(weight)
    count = max(1, int(fraction * len(candidates) + 0.5))

    def draw(n: int) -> NDArray[Any]:
        return np.arange(n)[::-1] if last else cpu.draw(seed, HOLDOUT, 0, 0, n)

    if group is not None:
        sizes = np.bincount(group[candidates], minlength=int(group.max()) + 1)
        order = np.argsort(draw(len(sizes)), kind="stable")
        order = order[sizes[order] > 0]
        chosen = order[: int(np.searchsorted(np.cumsum(sizes[order]), count)) + 1]
        if len(chosen) == len(order):
            raise DataError(
                f"validation_fraction={fraction:g} of {len(order)} groups with rows of positive weight leaves none to "
                "train on; give a validation set, or data without group."
            )
        held: NDArray[np.bool_] = np.isin(group, chosen)
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
        order, at = np.lexsort((draws, classes[candidates])), np.arange(len(candidates))
        mask[candidates[order[(at + 1) * count // len(at) > at * count // len(at)]]] = True
    if classes is not None:
        own = classes[candidates]
        for gone in np.setdiff1d(own, own[~mask[candidates]]):  # of a class that would not be learned the last stays
            rows = np.flatnonzero(own == gone)
            mask[candidates[rows[np.argmax(draws[rows])]]] = False
        if not mask.any():
            raise DataError("no class has two rows of positive weight, one to be held out; give a validation set.")
    return mask


def folds(
    seed: int,
    n_folds: int,
    n_rows: int,
    classes: NDArray[np.float64] | None = None,
    group: NDArray[np.int32] | None = None,
) -> NDArray[np.int64]:
    """Deal the rows to folds whose sizes differ by at most one: by the rank of their draws.

    Parameters
    ----------
    seed : int
        The seed of the fit.
    n_folds : int
        Number of folds, from 2 to `n_rows`.
    n_rows : int
        Number of rows.
    classes : (n_rows) float64, optional
        The class of every row: the folds' shares of each differ by at most one row too.
    group : (n_rows) int32, optional
        The group of every row, from 0: instead of rows, groups are dealt, whatever their sizes and classes.

    Returns
    -------
    (n_rows) int64
        The fold of every row.
    """
    if group is not None:
        n_groups = int(group.max()) + 1
        if whole(n_folds) and n_folds > n_groups:
            raise ParameterError(f"n_folds={n_folds} does not suit {n_groups} groups; choose 2..{n_groups}.")
        return folds(seed, n_folds, n_groups)[group]
    if not whole(n_folds) or not 2 <= n_folds <= n_rows:
        wrong = f"does not suit {n_rows} rows" if whole(n_folds) else "is not an integer"
        raise ParameterError(f"n_folds={n_folds!r} {wrong}; choose 2..{n_rows}.")
    fold = np.empty(n_rows, np.int64)
    by_class = np.zeros(n_rows) if classes is None else classes
    fold[np.lexsort((cpu.draw(seed, FOLDS, 0, 0, n_rows), by_class))] = np.arange(n_rows) % n_folds
    return fold


def check_fold_words(
    dealt: bool,
    classes: NDArray[np.float64] | None,
    group: NDArray[np.int32] | None,
    *,
    stratified: bool | None,
    shuffle: bool | None,
) -> None:
    """Raise where folds are not what a peer's words for them say.

    Parameters
    ----------
    dealt : bool
        Whether `folds` deals them; else they are the user's own.
    classes, group
        As in `folds`.
    stratified, shuffle : bool, optional
        Whether classes are spread evenly over folds, and whether rows are drawn at random.
    """
    by_class = classes is not None and group is None
    how = "evenly by class" if by_class else "whatever their labels" if group is None else "as whole groups"
    for name, asked, is_so in (("stratified", stratified, by_class), ("shuffle", shuffle, True)):
        if asked is not None and not dealt:
            raise ParameterError(f"{name}={asked!r} says how folds are dealt, but folds are given; leave it out.")
        if asked is not None and Flag().check(f"{name}={asked!r}", asked) != is_so:
            raise ParameterError(
                f"{name}={asked!r} is not available: rows are dealt at random, {how}. Leave it out, or give folds, "
                "such as sklearn.model_selection.KFold(5)."
            )


def given_folds(folds: Any, data: Dataset) -> list[tuple[NDArray[np.bool_], NDArray[np.bool_]]]:
    """Folds that a user has made.

    Parameters
    ----------
    folds : iterable of (train, test), or splitter of scikit-learn
        Positions of rows.
    data : Dataset
        The rows.

    Returns
    -------
    list of ((n_rows) bool, (n_rows) bool)
        For each fold the rows that it is not trained on, and those that it is measured on.
    """
    if hasattr(folds, "split"):
        folds = folds.split(np.zeros((data.n_rows, 1)), data.label, data.group)
    if not isinstance(folds, Iterable):
        raise ParameterError(f"folds={folds!r} is neither a list of pairs (train, test) nor has it a split method.")
    found = []
    for at, pair in enumerate(folds):
        try:
            train, test = (np.asarray(rows) for rows in pair)
            masks = np.ones(data.n_rows, np.bool_), np.zeros(data.n_rows, np.bool_)
            masks[0][train], masks[1][test] = False, True
        except (TypeError, ValueError, IndexError) as cause:
            raise ParameterError(
                f"fold {at} is no pair (train, test) of positions of {data.n_rows} rows: {cause}."
            ) from cause
        if masks[0].all() or not masks[1].any() or (masks[1] & ~masks[0]).any():
            raise ParameterError(f"fold {at} trains on no row, measures none, or has a row in both parts.")
        found.append(masks)
    if not found:
        raise ParameterError("folds is empty; give at least one pair (train, test), or leave it out.")
    return found
