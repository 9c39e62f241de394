"""Models of LightGBM: its text, and live ones through it.

In: text or a live model. Out: a `Booster`; raw scores agree bit for bit, since both add
float64 in tree order.
"""

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.device import elementary
from sapwood.errors import ModelFormatError, warn
from sapwood.model.booster import Booster
from sapwood.model.convert.categories import Categories, dictionaries
from sapwood.model.convert.document import parsed
from sapwood.model.convert.nodes import Nodes, Terms, frozen
from sapwood.model.convert.objective import described, with_classes

# bits of decision_type; the two above them say what is missing
CATEGORY = 1
DEFAULT_LEFT = 2
# 2: NaN
NOTHING = 0
ZERO = 1
MAX_WORDS = 2**24  # words of bit sets in a tree


def _softplus(raw: NDArray[np.float64]) -> NDArray[np.float64]:
    """The prediction of cross_entropy_lambda. Links have names, so that models which
    have them can be pickled.
    """
    return elementary.softplus(raw)


def _squared(raw: NDArray[np.float64]) -> NDArray[np.float64]:
    """The prediction of a model that was trained on square roots."""
    return np.sign(raw) * raw * raw


def _steep(steep: float, raw: NDArray[np.float64]) -> NDArray[np.float64]:
    """The prediction of a logistic model whose scores are multiplied first."""
    return elementary.sigmoid(steep * raw)


OBJECTIVES: dict[str, str | Callable[..., Any]] = {
    **dict.fromkeys(["regression", "regression_l2"], "squared_error"),
    "regression_l1": "absolute_error",
    **dict.fromkeys(
        ["huber", "fair", "quantile", "lambdarank", "rank_xendcg", "custom"], "identity"
    ),
    "mape": "mape",
    "poisson": "poisson",
    "gamma": "gamma",
    "tweedie": "exp",
    "binary": "logistic",
    "cross_entropy": "cross_entropy",
    "cross_entropy_lambda": _softplus,
    "multiclass": "softmax",
    "multiclassova": "sigmoid",
}


def of_object(model: Any) -> Booster:
    """Read a fitted estimator, with the classes of a classifier, or a Booster of
    LightGBM.
    """
    live = getattr(model, "booster_", model)
    if not hasattr(live, "model_to_string"):
        raise ModelFormatError(f"the {type(model).__name__} is not fitted.")
    return with_classes(
        of_bytes(live.model_to_string().encode()), getattr(model, "classes_", None)
    )


def of_bytes(raw: bytes) -> Booster:
    """Read a text file in UTF-8, as LightGBM 2.3 and later write it."""
    try:
        blocks = list(_blocks(raw.decode()))
    except UnicodeDecodeError as cause:
        raise ModelFormatError("the text of the model is not UTF-8.") from cause
    head = blocks[0]
    names = head.get("feature_names", "").split()
    n_columns = _whole(head, "max_feature_idx") + 1
    n_outputs = _whole(head, "num_tree_per_iteration")
    if len(names) != n_columns or n_outputs < 1:
        raise ModelFormatError(
            f"{len(names)} names for {n_columns} columns, {n_outputs} trees a round."
        )
    infos = head.get("feature_infos", "").split()
    if len(infos) != n_columns and infos:
        raise ModelFormatError(f"{len(infos)} infos for {n_columns} columns.")
    categories = _categories(names, infos, _pandas(raw))
    trees = [_tree(block, n_columns, categories) for block in blocks[1:]]
    grown = [(nodes.trees()[0], k % n_outputs) for k, nodes in enumerate(trees)]
    params: dict[str, Any] = {"boosting": "forest"} if "average_output" in head else {}
    if _zeros_missing(blocks[1:]):
        params["zero_as_missing"] = True
    return Booster(
        frozen(grown, n_outputs),
        base=np.zeros(n_outputs),
        feature_names=names,
        named=names != [f"Column_{j}" for j in range(n_columns)],
        params=params,
        categories=dictionaries(categories),
        **_objective(head.get("objective", "custom")),
    )


def _blocks(text: str) -> Iterator[dict[str, str]]:
    """The head, then each tree, as names and values; what follows the trees says
    nothing about predictions.
    """
    block: dict[str, str] = {}
    for line in text.splitlines():
        if line.startswith(("Tree=", "end of trees")):
            yield block
            block = {}
            if line.startswith("end"):
                return
        name, _, value = line.partition("=")
        block[name.strip()] = value.strip()
    raise ModelFormatError("the text of the model ends before its trees do.")


def _whole(block: dict[str, str], name: str) -> int:
    value = block.get(name, "")
    if not value.isdigit() or len(value) > 9:
        raise ModelFormatError(f"'{name}' is not a count: {value[:60]!r}.")
    return int(value)


def _leaves(block: dict[str, str]) -> int:
    """How many leaves a tree has: as many as values, whatever it claims."""
    n_leaves = _whole(block, "num_leaves")
    if n_leaves < 1 or len(block.get("leaf_value", "").split()) != n_leaves:
        raise ModelFormatError(f"a tree of {n_leaves} leaves has no value for each.")
    return n_leaves


def _numbers(
    block: dict[str, str],
    name: str,
    n: int,
    dtype: Any = np.float64,
    needed: bool = False,
) -> NDArray[Any]:
    """n numbers; zeros if an older version wrote none and they are not needed."""
    if name not in block and not needed:
        return np.zeros(n, dtype)
    try:
        found = np.array(block.get(name, "").split(), dtype)
    except (ValueError, OverflowError) as cause:
        raise ModelFormatError(
            f"'{name}' of a tree holds a value that is not a {np.dtype(dtype).name}."
        ) from cause
    if len(found) != n:
        raise ModelFormatError(
            f"'{name}' of a tree has {len(found)} numbers; expected {n}."
        )
    return found


def _pandas(raw: bytes) -> list[list[Any]]:
    """The values behind the codes of a data frame's category columns, in order; none
    for other tables.
    """
    line = raw[raw.rfind(b"\npandas_categorical:") :].strip()
    found = (
        parsed(line.partition(b":")[2])
        if line.startswith(b"pandas_categorical:")
        else None
    )
    if found is not None and not (
        isinstance(found, list) and all(isinstance(own, list) for own in found)
    ):
        raise ModelFormatError(
            "'pandas_categorical' of the model is not a list of lists."
        )
    return found or []


def _categories(
    names: list[str], infos: list[str], named: list[list[Any]]
) -> dict[int, Categories]:
    """The columns of categories: those whose values are listed rather than bounded, and
    those of `named` values.

    The file has the values of all columns of a categorical type, in order, but not
    which columns these are: ordered ones are split as numbers. Where several columns
    could be meant, all keep their codes.
    """
    found = {}
    codes = [_codes(info) for info in infos]
    pairs = _pairs(codes, named)
    for j, own in enumerate(codes):
        listed = not infos[j].startswith("[") and infos[j] != "none"
        if j in pairs:
            found[j] = Categories(
                (own or []) if listed else range(len(pairs[j])), pairs[j]
            )
        elif listed:
            found[j] = Categories(own or [])
    if named and not pairs:
        could = [names[j] for j, own in enumerate(codes) if own is not None]
        warn(
            f"The model does not say which of the columns {could} has the categories {named[0]}, so none has names: "
            "give tables to predict with codes, X[column].cat.codes."
        )
    return found


def _codes(info: str) -> list[int] | None:
    """The codes of a column that may be of categories, by its 'feature_infos'; None for
    other columns.
    """
    if info == "none":  # a constant
        return []
    try:
        if not info.startswith("["):
            return [code for one in info.split(":") if (code := int(one)) >= 0]
    except ValueError as cause:
        raise ModelFormatError(f"'feature_infos' has {info[:60]!r}.") from cause
    first, _, last = info.strip("[]").partition(":")
    return (
        list(range(int(last) + 1))
        if first == "0" and last.isdigit() and len(last) < 6
        else None
    )


def _pairs(
    codes: list[list[int] | None], named: list[list[Any]]
) -> dict[int, list[Any]]:
    """Which column has which of the named values, in order; empty where that cannot be
    told.

    A column of codes beyond the values cannot have them; one of as many codes is the
    better match. The best ways to pair the first j columns with the first k lists are
    counted, column by column.
    """
    best: list[tuple[int, int, tuple[int, ...]]] = [
        (0, 1, ()),
        *((-1, 0, ()) for _ in named),
    ]
    for j, own in enumerate(codes):
        for k in range(len(named), 0, -1):
            score, ways, pairs = best[k - 1]
            if (
                own is None
                or not ways
                or any(code >= len(named[k - 1]) for code in own)
            ):
                continue
            score += len(own) == len(named[k - 1]) or (
                not own and len(named[k - 1]) == 1
            )
            if score > best[k][0]:
                best[k] = score, ways, (*pairs, j)
            elif score == best[k][0]:
                best[k] = score, best[k][1] + ways, best[k][2]
    _, ways, pairs = best[-1]
    return dict(zip(pairs, named, strict=True)) if ways == 1 else {}


def _left(
    block: dict[str, str],
    kind: NDArray[Any],
    column: NDArray[Any],
    categories: dict[int, Categories],
) -> Any:
    """Codes of ours that go left at the category splits: their thresholds point to bit
    sets of values.
    """
    n = len(kind)
    if not np.any(kind & CATEGORY):
        return {}
    n_sets = _whole(block, "num_cat")
    bounds = _numbers(block, "cat_boundaries", n_sets + 1, np.int64, needed=True)
    if bounds[0] != 0 or np.any(np.diff(bounds) < 0) or bounds[-1] > MAX_WORDS:
        raise ModelFormatError(
            "the bounds of the category sets of a tree do not rise from 0."
        )
    words = _numbers(
        block, "cat_threshold", int(bounds[-1]), np.int64, needed=True
    ).astype(np.uint32)
    bits = np.unpackbits(words.view(np.uint8), bitorder="little")
    threshold = _numbers(block, "threshold", n)
    # many splits may point to one set
    found = {}
    known = {}
    for node in np.flatnonzero(kind & CATEGORY).tolist():
        which = int(threshold[node])
        j = int(column[node])
        if j not in categories or not 0 <= which < n_sets:
            raise ModelFormatError(
                "a category split is on a column without categories, or has no set."
            )
        if (which, j) not in known:
            numbers = np.flatnonzero(bits[32 * bounds[which] : 32 * bounds[which + 1]])
            known[which, j] = categories[j].codes(numbers)
        found[node] = known[which, j]
    return found


def _tree(
    block: dict[str, str], n_columns: int, categories: dict[int, Categories]
) -> Nodes:
    """One tree: splits are numbered 0, 1, ..., leaves -1, -2, ... and placed after the
    splits here.
    """
    n_leaves = _leaves(block)
    n = n_leaves - 1
    kind = _numbers(block, "decision_type", n, np.int64)
    column = _numbers(block, "split_feature", n, np.int64)
    threshold = _numbers(block, "threshold", n)
    if np.any((column < 0) | (column >= n_columns)):
        raise ModelFormatError(
            f"a split is on a column beyond the {n_columns} of the model."
        )
    of_set = kind & CATEGORY != 0
    by_code = _left(block, kind, column, categories)
    # of an ordered type
    for node in np.flatnonzero(~of_set & np.isin(column, list(categories))).tolist():
        by_code[node] = np.arange(
            np.clip(
                math.floor(threshold[node]) + 1, 0, len(categories[column[node]].values)
            )
        )
    missing = kind >> 2 & 3
    # Where nothing counts as missing, LightGBM reads NaN as 0.
    missing_left = (
        np.where(missing == NOTHING, threshold >= 0.0, kind & DEFAULT_LEFT != 0)
        & ~of_set
    )

    def placed(name: str) -> NDArray[np.int64]:
        child = _numbers(block, name, n, np.int64)
        return np.where(child < 0, n + ~child, child)

    def joined(splits: Any, leaves: Any) -> NDArray[Any]:
        return np.concatenate([splits, leaves])

    nothing = np.zeros(n_leaves)
    return Nodes(
        left=joined(placed("left_child"), nothing - 1).astype(np.int64),
        right=joined(placed("right_child"), nothing - 1).astype(np.int64),
        column=joined(column, nothing),
        threshold=joined(
            np.where(np.isin(np.arange(n), list(by_code)), 0.0, threshold), nothing
        ),
        missing_left=joined(missing_left, nothing),
        value=joined(np.zeros(n), _numbers(block, "leaf_value", n_leaves)),
        # LightGBM's is twice the reduction of the loss
        gain=joined(_numbers(block, "split_gain", n) / 2.0, nothing),
        cover=np.maximum(
            joined(
                _numbers(block, "internal_weight", n),
                _numbers(block, "leaf_weight", n_leaves),
            ),
            0.0,
        ),
        count=joined(
            _numbers(block, "internal_count", n),
            _numbers(block, "leaf_count", n_leaves),
        ),
        sets=by_code,
        terms=_terms(block, n, n_leaves) if block.get("is_linear", "0") != "0" else {},
    )


def _zeros_missing(blocks: list[dict[str, str]]) -> bool:
    """Whether zeros are missing values (zero_as_missing), which LightGBM says at every
    split by a number.
    """
    kinds = [
        _numbers(block, "decision_type", _leaves(block) - 1, np.int64)
        for block in blocks
    ]
    kind = np.concatenate([np.empty(0, np.int64), *kinds])
    zero = kind[kind & CATEGORY == 0] >> 2 & 3 == ZERO
    if zero.any() and not zero.all():
        raise ModelFormatError(
            "zeros are missing values at some splits of the model and not at others."
        )
    return bool(zero.any())


def _terms(block: dict[str, str], first: int, n_leaves: int) -> dict[int, Terms]:
    """The constant and the coefficients of each leaf (linear_tree); the leaves are
    nodes from `first` on.
    """
    size = _numbers(block, "num_features", n_leaves, np.int64)
    if np.any(size < 0):
        raise ModelFormatError(
            "'num_features' of a tree holds something that is not a count."
        )
    # which cannot overflow
    constant = _numbers(block, "leaf_const", n_leaves, needed=True)
    total = sum(size.tolist())
    column = _numbers(block, "leaf_features", total, np.int32, needed=True)
    factor = _numbers(block, "leaf_coeff", total, needed=True)
    found = {}
    for leaf, end in enumerate(np.cumsum(size).tolist()):
        own = slice(end - size[leaf], end)
        order = np.argsort(column[own], kind="stable")
        found[first + leaf] = (
            np.concatenate([np.full(1, -1, np.int32), column[own][order]]),
            np.concatenate([constant[leaf : leaf + 1], factor[own][order]]),
        )
    return found


def _objective(words: str) -> dict[str, Any]:
    """The objective from its line: a name, then its settings."""
    name, *settings = words.split() or ["custom"]
    if name not in OBJECTIVES:
        raise ModelFormatError(f"objective {name!r} of LightGBM is not known here.")
    ours = OBJECTIVES[name]
    if "sqrt" in settings:
        ours = _squared
    given = next((one[8:] for one in settings if one.startswith("sigmoid:")), "1")
    try:
        steep = float(given)
    except ValueError:
        steep = math.nan
    if not math.isfinite(steep) or steep <= 0:
        raise ModelFormatError(
            f"sigmoid {given[:60]!r} of the objective is not a positive number."
        )
    if steep != 1.0:
        ours = (
            "sigmoid2" if steep == 2.0 and name == "binary" else partial(_steep, steep)
        )
    return described("lightgbm", name, ours)
