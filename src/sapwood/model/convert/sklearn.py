"""Models of scikit-learn: both gradient boostings, forests of both kinds, single trees.
Live only: it has no file.

In: a fitted estimator. Out: a `Booster`; raw scores agree bit for bit (forests: as one
thread adds their trees).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.errors import ModelFormatError
from sapwood.model.booster import Booster
from sapwood.model.convert.categories import Categories, dictionaries
from sapwood.model.convert.nodes import Nodes, frozen, rounded_up_to
from sapwood.model.convert.objective import described, with_classes

LINKS = {  # the class of a loss -> ours, or the link
    "HalfSquaredError": "squared_error",
    "AbsoluteError": "absolute_error",
    "PinballLoss": "identity",
    "HuberLoss": "identity",
    "HalfPoissonLoss": "poisson",
    "HalfGammaLoss": "gamma",
    "HalfBinomialLoss": "logistic",
    "HalfMultinomialLoss": "softmax",
    "ExponentialLoss": "exponential",
}
FORESTS = ("RandomForest", "ExtraTrees")
TREES = ("DecisionTree", "ExtraTree")


def of_object(model: Any) -> Booster:
    """Read a fitted estimator, with the classes of a classifier."""
    name = type(model).__name__
    kind = name.removesuffix("Classifier").removesuffix("Regressor")
    if not hasattr(model, "n_features_in_"):
        raise ModelFormatError(f"the {name} is not fitted.")
    if name.startswith("HistGradientBoosting"):
        return _histogram(model)
    if name.startswith("GradientBoosting"):
        return _friedman(model)
    if kind in (*FORESTS, *TREES):
        return _average(model, model.estimators_ if kind in FORESTS else [model])
    raise ModelFormatError(
        f"a {name} of scikit-learn is not read; only gradient boostings, forests and trees are."
    )


def _booster(
    model: Any,
    grown: list[tuple[dict[str, Any], int]],
    base: NDArray[np.float64],
    **more: Any,
) -> Booster:
    """A booster with the names and the classes of an estimator."""
    names = getattr(model, "feature_names_in_", None)
    columns = (
        [f"f{j}" for j in range(model.n_features_in_)]
        if names is None
        else [str(name) for name in names]
    )
    trees = frozen(grown, len(base))
    booster = Booster(
        trees,
        base=base,
        feature_names=columns,
        named=names is not None,
        **({"params": {}} | more),
    )
    return with_classes(booster, getattr(model, "classes_", None))


def _histogram(model: Any) -> Booster:
    """HistGradientBoosting: thresholds and sums in float64."""
    place, categories = _encoded(model)
    base = np.atleast_1d(np.asarray(model._baseline_prediction, np.float64).ravel())
    grown = []
    for together in model._predictors:
        for output, predictor in enumerate(together):
            node = predictor.nodes
            leaf = node["is_leaf"].astype(bool)
            column = place[node["feature_idx"]]
            sets = {}
            for at in np.flatnonzero(
                node["is_categorical"].astype(bool) & ~leaf
            ).tolist():
                words = np.ascontiguousarray(
                    predictor.raw_left_cat_bitsets[node["bitset_idx"][at]]
                )
                numbers = np.flatnonzero(
                    np.unpackbits(words.view(np.uint8), bitorder="little")
                )
                sets[at] = categories[int(column[at])].codes(numbers)
            of_set = np.isin(np.arange(len(node)), list(sets))
            nodes = Nodes(
                left=np.where(leaf, -1, node["left"].astype(np.int64)),
                right=np.where(leaf, -1, node["right"].astype(np.int64)),
                column=column,
                threshold=np.where(of_set, 0.0, node["num_threshold"]),
                missing_left=node["missing_go_to_left"],
                value=node["value"].astype(np.float64),
                gain=np.maximum(node["gain"], 0.0).astype(np.float64),
                cover=node["count"].astype(np.float64),  # it keeps no hessians
                count=node["count"].astype(np.float64),
                sets=sets,
            )
            grown.append((nodes.trees()[0], output))
    return _booster(
        model, grown, base, categories=dictionaries(categories), **_loss(model)
    )


def _encoded(model: Any) -> tuple[NDArray[np.int64], dict[int, Categories]]:
    """Which column of the table each of the model's is, and the columns of categories,
    which it puts first.
    """
    coded = getattr(model, "is_categorical_", None)
    if coded is None:
        return np.arange(model.n_features_in_), {}
    first = np.flatnonzero(coded)
    rest = np.flatnonzero(~np.asarray(coded))
    known = model._preprocessor.named_transformers_["encoder"].categories_
    categories = {}
    for j, values in zip(first.tolist(), known, strict=True):
        # NaN stands last
        plain = [
            value for value in values.tolist() if not (value is None or value != value)
        ]
        categories[j] = Categories(range(len(plain)), plain)
    return np.concatenate([first, rest]), categories


def _loss(model: Any) -> dict[str, Any]:
    name = type(model._loss).__name__
    if name not in LINKS:
        raise ModelFormatError(f"the loss {name} of scikit-learn is not known here.")
    return described("sklearn", name, LINKS[name])


def _friedman(model: Any) -> Booster:
    """GradientBoosting: single-precision tables, float64 sums, shrinkage outside of the
    trees.
    """
    base = model._raw_predict_init(np.zeros((1, model.n_features_in_), np.float32))[
        0
    ].astype(np.float64)
    if model.init is not None and model.init != "zero":
        raise ModelFormatError(
            "the model starts from another model (init), which is not read."
        )
    grown = []
    for together in model.estimators_:
        for output, own in enumerate(together):
            tree = _single(own.tree_).trees()[0]
            tree["value"] = model.learning_rate * tree["value"]
            grown.append((tree, output))
    return _booster(model, grown, base, **_loss(model))


def _single(tree: Any, value: NDArray[np.float64] | None = None) -> Nodes:
    """A tree of scikit-learn's own kind, which reads its table in single precision."""
    missing = getattr(tree, "missing_go_to_left", np.zeros(tree.node_count, np.uint8))
    cover = tree.weighted_n_node_samples.astype(np.float64)
    fall = np.zeros(tree.node_count)
    split = tree.children_left >= 0
    left = tree.children_left[split]
    right = tree.children_right[split]
    impurity = tree.impurity * cover
    fall[split] = np.maximum(impurity[split] - impurity[left] - impurity[right], 0.0)
    return Nodes(
        left=tree.children_left,
        right=tree.children_right,
        column=tree.feature,
        threshold=rounded_up_to(tree.threshold),
        missing_left=missing,
        value=tree.value[:, 0, 0] if value is None else value,
        gain=fall / 2.0,
        cover=cover,
        count=cover,
    )


def _average(model: Any, members: list[Any]) -> Booster:
    """A forest: the mean of its trees' values, or of their shares of each class."""
    n_targets = model.n_outputs_
    classes = getattr(model, "classes_", None)
    if classes is not None and n_targets > 1:
        raise ModelFormatError(
            "a forest that classifies several targets at once is not read; give one at a time."
        )
    grown = []
    for member in members:
        value = (
            member.tree_.value[:, :, 0]
            if classes is None
            else member.tree_.value[:, 0, :]
        )
        if classes is not None and len(classes) == 2:
            value = value[:, 1:]
        parts = _single(member.tree_, value.astype(np.float64)).trees()
        grown += [(tree, output) for output, tree in enumerate(parts)]
    about = described(
        "sklearn", "mean" if classes is None else "share of a class", "identity"
    )
    return _booster(
        model, grown, np.zeros(len(parts)), params={"boosting": "forest"}, **about
    )
