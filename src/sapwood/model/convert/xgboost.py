"""Models of XGBoost: JSON, UBJSON, and live ones through the latter.

In: a document, bytes or a live model. Out: a `Booster`; raw scores agree to the
rounding of XGBoost's float32 sums.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.data.categories import MAX_BINS
from sapwood.device import elementary
from sapwood.errors import ModelFormatError
from sapwood.model.booster import Booster
from sapwood.model.convert.categories import Categories, dictionaries
from sapwood.model.convert.document import Document, of_ubjson
from sapwood.model.convert.nodes import Nodes, below, frozen
from sapwood.model.convert.objective import described, with_classes

# objective -> ours, or a link where there is none of ours
OBJECTIVES: dict[str, str | Callable[..., Any]] = {
    "reg:squarederror": "squared_error",
    "reg:linear": "squared_error",
    "reg:absoluteerror": "absolute_error",
    **dict.fromkeys(["reg:squaredlogerror", "reg:pseudohubererror"], "identity"),
    **dict.fromkeys(["reg:quantileerror", "reg:expectileerror"], "identity"),
    "reg:logistic": "cross_entropy",
    "binary:logistic": "logistic",
    "binary:logitraw": "identity",
    "binary:hinge": "step",
    "count:poisson": "poisson",
    "reg:gamma": "gamma",
    **dict.fromkeys(["reg:tweedie", "survival:cox", "survival:aft"], "exp"),
    "multi:softmax": "softmax",
    "multi:softprob": "softmax",
    **dict.fromkeys(["rank:pairwise", "rank:ndcg", "rank:map"], "identity"),
}
MAX_COLUMNS = 2**22  # each gets a name, and a small file can claim any number
# columns without names for each node of the file, beyond the first 65,536
MAX_PER_NODE = 1_000
LOGITS = ("reg:logistic", "binary:logistic")
LOGS = ("count:poisson", "reg:gamma", "reg:tweedie", "survival:cox", "survival:aft")


def of_object(model: Any) -> Booster:
    """Read a fitted estimator, with the classes of a classifier, or a Booster of
    XGBoost.
    """
    if not hasattr(model, "get_booster"):
        return of_document(of_ubjson(bytes(model.save_raw("ubj"))))
    if not model.__sklearn_is_fitted__():
        raise ModelFormatError(f"the {type(model).__name__} is not fitted.")
    if not math.isnan(model.missing):
        raise ModelFormatError(
            f"missing={model.missing} of the estimator is not read; train with NaN for missing values."
        )
    whole = of_object(model.get_booster())
    # else one score for each of several labels
    if whole.n_outputs == 1 or whole.link == "softmax":
        whole = with_classes(whole, getattr(model, "classes_", None))
    return _up_to_best(whole, getattr(model, "best_iteration", None))


def of_document(found: Document) -> Booster:
    """Read the document that both kinds of file hold, as XGBoost 1.6 and later write
    it.

    A file that an estimator wrote is read as the estimator would read it: without the
    rounds after the best one.
    """
    whole = _whole(found)
    said = Document(found.part("learner").get("attributes") or {})
    return _up_to_best(
        whole,
        said.count("best_iteration")
        if {"scikit_learn", "best_iteration"} <= set(said)
        else None,
    )


def _up_to_best(whole: Booster, best: int | None) -> Booster:
    """The rounds that an estimator predicts with, where it stopped early."""
    if best is None or best >= whole.n_rounds:
        return whole
    trees = whole.trees.slice(0, (best + 1) * whole.n_outputs * whole.n_parallel_trees)
    return replace(whole, trees=trees, best_round=best + 1)


def _whole(found: Document) -> Booster:
    """The model with all its rounds."""
    learner = found.part("learner")
    booster = learner.part("gradient_booster")
    if booster.text("name") == "gblinear":
        raise ModelFormatError("the model is linear (gblinear); only trees are read.")
    outer = booster  # of DART before XGBoost 3.3, around a plain booster
    if outer.text("name") == "dart":
        booster = outer.part("gbtree")
    model, param = booster.part("model"), learner.part("learner_model_param")
    weighted = next((part for part in (model, outer) if part.get("weight_drop")), None)
    drop = None if weighted is None else weighted.array("weight_drop", np.float32)
    n_columns = param.count("num_feature")
    if n_columns > MAX_COLUMNS:
        raise ModelFormatError(
            f"the model has {n_columns:,} columns; at most {MAX_COLUMNS:,} are read."
        )
    n_outputs = max(
        1,
        param.count("num_class"),
        param.count("num_target") if "num_target" in param else 1,
    )
    objective = learner.part("objective").text("name")
    if objective not in OBJECTIVES:
        raise ModelFormatError(f"objective {objective!r} of XGBoost is not known here.")
    info = model.array("tree_info", np.int64)
    documents = model.parts("trees")
    categories = _categories(learner, model, documents)
    trees = [_tree(tree, n_columns, categories) for tree in documents]
    if len(trees) != len(info) or (drop is not None and len(drop) != len(info)):
        raise ModelFormatError(
            f"{len(trees)} trees, but 'tree_info' or 'weight_drop' speaks of {len(info)}."
        )
    grown = []
    for k, nodes in enumerate(trees):
        parts = nodes.trees()
        outputs = range(n_outputs) if len(parts) > 1 else [int(info[k])]
        if len(parts) not in (1, n_outputs):
            raise ModelFormatError(
                f"tree {k} has values for {len(parts)} outputs of {n_outputs}."
            )
        for tree, output in zip(parts, outputs, strict=True):
            if drop is not None:  # both are float32, and so is XGBoost's product
                tree["value"] = (tree["value"].astype(np.float32) * drop[k]).astype(
                    np.float64
                )
            grown.append((tree, output))
    n_parallel = max(1, model.part("gbtree_model_param").count("num_parallel_tree"))
    names = (
        [str(name) for name in learner.items_of("feature_names")]
        if learner.get("feature_names")
        else None
    )
    if names is not None and len(names) != n_columns:
        raise ModelFormatError(f"{len(names)} names for {n_columns} columns.")
    if names is None and n_columns > 2**16 + MAX_PER_NODE * sum(
        len(nodes.left) for nodes in trees
    ):
        raise ModelFormatError(
            f"the model claims {n_columns:,} columns without names, and has few splits on them."
        )
    ours = OBJECTIVES[objective]
    if (
        objective == "reg:quantileerror"
        and n_outputs > 1
        and found.items_of("version")[:2] >= [3, 3]
    ):
        ours = _uncrossed  # older versions let them cross
    return Booster(
        frozen(grown, n_outputs),
        base=_base(param, objective, n_outputs),
        feature_names=names or [f"f{j}" for j in range(n_columns)],
        named=names is not None,
        params={"n_parallel_trees": n_parallel},
        categories=dictionaries(categories),
        **described("xgboost", objective, ours),
    )


def _uncrossed(raw: NDArray[np.float64]) -> NDArray[np.float64]:
    """Quantiles in order, as XGBoost hands several of them out."""
    return np.sort(raw, axis=1)


def _categories(
    learner: Document, model: Document, trees: list[Document]
) -> dict[int, Categories]:
    """The columns of categories, with the values that newer versions keep; else numbers
    up to the largest in a set.

    XGBoost sends every number that is not in a set to the left, even one that it never
    saw; here it is missing.
    """
    kinds = learner.items_of("feature_types") if learner.get("feature_types") else []
    most: dict[int, int] = {j: -1 for j, kind in enumerate(kinds) if kind == "c"}
    for tree in trees:
        for column, numbers in _sets(tree).values():
            most[column] = max(most.get(column, -1), int(numbers.max(initial=-1)))
    kept = model.part("cats").parts("enc") if model.get("cats") else []
    if sum(max(0, top) for top in most.values()) > MAX_COLUMNS:
        raise ModelFormatError(
            f"the columns of the model have more than {MAX_COLUMNS:,} categories."
        )
    found = {}
    for j, top in most.items():
        values = _values(kept[j]) if j < len(kept) else []
        if top >= MAX_BINS:
            raise ModelFormatError(
                f"column {j} has category {top}; at most {MAX_BINS:,} are read."
            )
        found[j] = (
            Categories(range(len(values)), values)
            if values
            else Categories(range(top + 1))
        )
    return found


def _values(kept: Document) -> list[Any]:
    """The values of a column: texts one after the other with their bounds, or
    numbers.
    """
    if "offsets" not in kept:
        return kept.items_of("values")
    bounds = kept.array("offsets", np.int64)
    raw = kept.array("values", np.int64).astype(np.int8).tobytes()
    if len(bounds) and (
        bounds[0] != 0 or bounds[-1] > len(raw) or np.any(np.diff(bounds) < 0)
    ):
        raise ModelFormatError("the texts of categories have bounds that do not rise.")
    try:
        return [raw[first:last].decode() for first, last in pairwise(bounds.tolist())]
    except UnicodeDecodeError as cause:
        raise ModelFormatError("a category is not UTF-8.") from cause


def _sets(tree: Document) -> dict[int, tuple[int, NDArray[np.int64]]]:
    """Column and numbers of every category split: those that go right."""
    if "categories_nodes" not in tree:
        return {}
    nodes, first, size = (
        tree.array(f"categories_{name}", np.int64)
        for name in ("nodes", "segments", "sizes")
    )
    numbers = tree.array("categories", np.int64)
    column = tree.array("split_indices", np.int64)
    if not len(nodes) == len(first) == len(size) or np.any(
        (nodes < 0) | (nodes >= len(column))
    ):
        raise ModelFormatError("the category splits of a tree do not fit its nodes.")
    if np.any((first < 0) | (size < 0) | (first + size > len(numbers))) or np.any(
        numbers < 0
    ):
        raise ModelFormatError("the category sets of a tree are beyond its categories.")
    if size.sum() > len(numbers):
        raise ModelFormatError("the category sets of a tree overlap.")
    return {
        int(node): (int(column[node]), numbers[at : at + n])
        for node, at, n in zip(nodes, first, size, strict=True)
    }


def _tree(tree: Document, n_columns: int, categories: dict[int, Categories]) -> Nodes:
    """One tree; vector leaves have one value for each output."""
    left = tree.array("left_children", np.int64)
    right = tree.array("right_children", np.int64)
    n = len(left)
    leaf = left < 0
    condition = tree.array("split_conditions", np.float32)
    column = tree.array("split_indices", np.int64)
    missing_left = tree.array("default_left", np.int64)
    # the reduction of the loss
    twice = tree.array("loss_changes", np.float32).astype(np.float64)
    cover = np.maximum(tree.array("sum_hessian", np.float32).astype(np.float64), 0.0)
    width = (
        tree.part("tree_param").count("size_leaf_vector")
        if "size_leaf_vector" in tree.part("tree_param")
        else 1
    )
    if width > 1:
        weights = tree.array(
            "leaf_weights" if "leaf_weights" in tree else "base_weights", np.float32
        )
        value = _vectors(weights, left, right, width)
    else:
        value = condition.astype(np.float64)
    sizes = {
        len(array)
        for array in (right, condition, column, value, missing_left, twice, cover)
    }
    if sizes != {n}:
        raise ModelFormatError(
            f"a tree has {n} nodes, but arrays of {sorted(sizes)} of them."
        )
    if np.any(~leaf & ((column < 0) | (column >= n_columns))):
        raise ModelFormatError(
            f"a split is on a column beyond the {n_columns} of the model."
        )
    # A set goes right there and left here, so the children change places: a complement
    # may be far longer than the file.
    sets = {
        node: categories[own].codes(numbers)
        for node, (own, numbers) in _sets(tree).items()
    }
    of_set = np.isin(np.arange(n), list(sets)) & ~leaf
    if "split_type" in tree and np.any(
        (tree.array("split_type", np.int64)[~leaf] == 1) != of_set[~leaf]
    ):
        raise ModelFormatError("a tree has category splits without a set.")
    return Nodes(
        left=np.where(of_set, right, left),
        right=np.where(of_set, left, right),
        column=column,
        threshold=np.where(leaf | of_set, 0.0, below(condition)),
        missing_left=np.where(of_set, 1 - missing_left, missing_left),
        value=value,
        gain=twice / 2.0,
        cover=cover,
        count=cover,  # XGBoost counts no rows
        sets=sets,
    )


def _vectors(weights: Any, left: Any, right: Any, width: int) -> Any:
    """Values of vector leaves, (n_nodes, width): all nodes have some, or only leaves,
    whose place is in `right`.
    """
    if len(weights) == len(left) * width:
        return weights.reshape(-1, width).astype(np.float64)
    leaf = left < 0
    n_leaves = int(leaf.sum())
    fit = (
        len(left) == len(right) == 2 * n_leaves - 1 and len(weights) == width * n_leaves
    )
    if not fit or np.any((right[leaf] < 0) | (right[leaf] >= n_leaves)):
        raise ModelFormatError("the values of vector leaves do not fit the leaves.")
    value = np.zeros((len(left), width))
    value[leaf] = weights.reshape(-1, width)[right[leaf]]
    return value


def _base(param: Document, objective: str, n_outputs: int) -> Any:
    """The base score in raw space: XGBoost keeps it as a prediction, one for all
    outputs or one for each.
    """
    text = param.text("base_score").strip("[] ")
    try:
        given = np.array([float(one) for one in text.split(",")], np.float32).astype(
            np.float64
        )
    except ValueError as cause:
        raise ModelFormatError(f"base_score {text[:60]!r} is not a number.") from cause
    if len(given) not in (1, n_outputs):
        raise ModelFormatError(
            f"base_score has {len(given)} values for {n_outputs} outputs."
        )
    if objective in LOGITS:
        given = np.array(
            [
                -float(elementary.log(1.0 / p - 1.0)) if 0 < p < 1 else math.nan
                for p in given
            ]
        )
    elif objective in LOGS:
        given = np.array(
            [float(elementary.log(p)) if p > 0 else math.nan for p in given]
        )
    if not np.isfinite(given).all():
        raise ModelFormatError(
            f"base_score {text[:60]!r} does not fit objective {objective!r}."
        )
    return np.broadcast_to(given, (n_outputs,))
