"""Models of CatBoost: its JSON; live models and .cbm files through CatBoost itself, where it is installed.

In: a document, bytes or a live model. Out: a `Booster`; raw scores agree to the last bits of a float64 sum.
"""

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.errors import ModelFormatError
from sapwood.model.booster import Booster
from sapwood.model.convert.document import Document, of_json
from sapwood.model.convert.nodes import Nodes, by_round, frozen, rounded_up_to
from sapwood.model.convert.objective import described

OBJECTIVES = {
    "RMSE": "squared_error",
    "MultiRMSE": "squared_error",
    "MAE": "absolute_error",
    "MAPE": "mape",
    "Quantile": "identity",
    "Expectile": "identity",
    "Huber": "identity",
    "LogCosh": "log_cosh",
    "Poisson": "poisson",
    "Tweedie": "exp",
    "Logloss": "logistic",
    "CrossEntropy": "cross_entropy",
    "Focal": "sigmoid",
    "MultiClass": "softmax",
    "MultiClassOneVsAll": "sigmoid",
    "MultiLogloss": "multilabel",
    "MultiCrossEntropy": "sigmoid",
}
MISSING_LEFT = {"AsIs": False, "AsFalse": True, "AsTrue": False}  # a condition holds for x > border, to the right


def of_object(model: Any) -> Booster:
    """Read a fitted model of CatBoost.

    Parameters
    ----------
    model : catboost.CatBoost

    Returns
    -------
    Booster
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.json")
        model.save_model(str(path), format="json")
        return of_document(of_json(path.read_bytes()))


def of_file(raw: bytes) -> Booster:
    """Read a .cbm file, through CatBoost."""
    try:
        import catboost  # type: ignore[import-untyped]
    except ImportError as cause:
        raise ModelFormatError(
            "a .cbm file is read through catboost, which is not installed; install it, or save as JSON: "
            "model.save_model(path, format='json')."
        ) from cause
    try:
        return of_object(catboost.CatBoost().load_model(blob=raw))
    except catboost.CatBoostError as cause:
        raise ModelFormatError(f"catboost cannot read the file: {str(cause)[:200]}.") from cause


def of_document(found: Document) -> Booster:
    """Read the document of a JSON file.

    Parameters
    ----------
    found : Document
        As CatBoost 0.20 and later write it.

    Returns
    -------
    Booster
    """
    features = found.part("features_info")
    if features.get("categorical_features") or features.get("ctrs"):
        raise ModelFormatError(
            "the model has categorical columns; CatBoost keeps hashes of their values and not the values, so it cannot "
            "be read. Train it on numbers, or train here: sapwood.train({'recipe': 'catboost'}, ...)."
        )
    if features.get("text_features") or features.get("embedding_features"):
        raise ModelFormatError("the model has text or embedding columns, which are not read.")
    columns = features.parts("float_features")
    place = [one.count("flat_feature_index") for one in columns]
    n_columns = len(columns)
    if sorted(place) != list(range(n_columns)):
        raise ModelFormatError("the columns of the model are not numbered one after the other.")
    names = [f"f{j}" for j in range(n_columns)]
    for one, j in zip(columns, place, strict=True):
        names[j] = str(one.get("feature_id") or names[j])
    missing_left = np.array([MISSING_LEFT.get(str(one.get("nan_value_treatment")), False) for one in columns])
    own = _Columns(np.array(place, np.int64), missing_left)
    match found.items_of("scale_and_bias"):
        case [int() | float() as scale, list() as bias]:
            base = np.array(bias, np.float64)
        case [int() | float() as scale, int() | float() as bias]:
            base = np.array([bias], np.float64)
        case other:
            raise ModelFormatError(f"'scale_and_bias' is {str(other)[:60]}.")
    symmetric = "oblivious_trees" in found
    read = _symmetric if symmetric else _free
    trees = [read(tree, own) for tree in found.parts("oblivious_trees" if symmetric else "trees")]
    grown = [(tree, k) for nodes in trees for k, tree in enumerate(nodes.trees())]
    n_outputs = max((k for _, k in grown), default=-1) + 1 or len(base)
    for tree, _ in grown:
        tree["value"] = float(scale) * tree["value"]
    named = names != [str(j) for j in range(n_columns)] and names != [f"f{j}" for j in range(n_columns)]
    return Booster(
        frozen(by_round(grown, n_outputs)),
        base=np.broadcast_to(base if len(base) in (1, n_outputs) else base[:1], (n_outputs,)),
        feature_names=names,
        named=named,
        params={},
        **_objective(found),
    )


class _Columns:
    """Where the columns of a model are in the table, and where missing values of each go."""

    def __init__(self, place: NDArray[np.int64], missing_left: NDArray[np.bool_]) -> None:
        self.place, self.missing_left = place, missing_left

    def split(self, split: Document) -> tuple[int, float, bool]:
        """Column, threshold and side of missing values."""
        if split.get("split_type", "FloatFeature") != "FloatFeature":
            raise ModelFormatError(f"the model splits by {split['split_type']}, which is not read.")
        at = split.count("float_feature_index")
        if at >= len(self.place):
            raise ModelFormatError(f"a split is on column {at} of {len(self.place)}.")
        border = float(rounded_up_to(np.array([split.number("border")]))[0])
        return int(self.place[at]), border, bool(self.missing_left[at])


def _symmetric(tree: Document, columns: _Columns) -> Nodes:
    """An oblivious tree: the first condition is the lowest bit of a leaf's number, so it comes last."""
    conditions = tree.parts("splits") if tree.get("splits") else []
    splits = [columns.split(condition) for condition in reversed(conditions)]
    depth = len(splits)
    if depth > 16:
        raise ModelFormatError(f"a tree is {depth} levels deep; CatBoost grows 16 at most.")
    inner, leaves = 2**depth - 1, 2**depth
    value = tree.array("leaf_values", np.float64)
    weight = tree.array("leaf_weights", np.float64) if "leaf_weights" in tree else np.zeros(leaves)
    if len(value) == 0 or len(value) % leaves or len(weight) != leaves:
        raise ModelFormatError(f"a tree of {leaves} leaves has {len(value)} values and {len(weight)} weights.")
    level = np.repeat(np.arange(depth), 2 ** np.arange(depth))
    cover = np.concatenate([np.zeros(inner), weight])
    for k in range(inner - 1, -1, -1):
        cover[k] = cover[2 * k + 1] + cover[2 * k + 2]
    at = np.arange(inner)

    def laid(which: int, dtype: Any) -> NDArray[Any]:
        per_level = np.array([split[which] for split in splits], dtype)
        return np.concatenate([per_level[level], np.zeros(leaves, dtype)])

    outputs = len(value) // leaves
    return Nodes(
        left=np.concatenate([2 * at + 1, np.full(leaves, -1)]),
        right=np.concatenate([2 * at + 2, np.full(leaves, -1)]),
        column=laid(0, np.int64),
        threshold=laid(1, np.float64),
        missing_left=laid(2, np.uint8),
        value=np.concatenate([np.zeros((inner, outputs)), value.reshape(leaves, outputs)]),
        gain=np.zeros(inner + leaves),
        cover=cover,
        count=cover,
    )


def _free(tree: Document, columns: _Columns) -> Nodes:
    """A tree of nested nodes, from the policies Depthwise and Lossguide."""
    rows: list[tuple[int, int, int, float, bool, list[float], float]] = []

    def add(node: Document) -> int:
        at = len(rows)
        if "split" not in node:
            value = node.get("value", 0.0)
            values = [float(one) for one in (value if isinstance(value, list) else [value])]
            rows.append((-1, -1, 0, 0.0, False, values, node.number("weight") if "weight" in node else 0.0))
            return at
        column, threshold, missing_left = columns.split(node.part("split"))
        rows.append((0, 0, 0, 0.0, False, [], 0.0))
        left, right = add(node.part("left")), add(node.part("right"))
        rows[at] = (left, right, column, threshold, missing_left, [], rows[left][6] + rows[right][6])
        return at

    add(tree)
    width = max(len(row[5]) for row in rows)
    value = np.array([row[5] or [0.0] * width for row in rows])
    cover = np.array([row[6] for row in rows])
    left, right, column, threshold, missing = (np.array([row[k] for row in rows]) for k in range(5))
    return Nodes(left, right, column, threshold.astype(float), missing, value, np.zeros(len(rows)), cover, cover)


def _objective(found: Document) -> dict[str, Any]:
    """The loss, which hides in a string of JSON among the training parameters."""
    name = "RMSE"
    about = found.get("model_info")
    if isinstance(about, dict):
        params = about.get("params")
        if isinstance(params, str):
            try:
                params = json.loads(params)
            except ValueError as cause:
                raise ModelFormatError("'params' of the model are no JSON.") from cause
        if isinstance(params, dict) and isinstance(params.get("loss_function"), dict):
            name = str(params["loss_function"].get("type"))
    if name not in OBJECTIVES:
        raise ModelFormatError(f"loss {name!r} of CatBoost is not known here.")
    return described("catboost", name, OBJECTIVES[name])
