"""Models of CatBoost: its JSON; live models and .cbm files through CatBoost itself,
where it is installed.

In: a document, bytes or a live model. Out: a `Booster`; raw scores agree to the last
bits of a float64 sum.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sapwood.errors import ModelFormatError
from sapwood.model.booster import Booster
from sapwood.model.convert.categories import Categories, dictionaries
from sapwood.model.convert.document import Document, of_json, parsed
from sapwood.model.convert.nodes import Nodes, frozen, rounded_up_to
from sapwood.model.convert.objective import described, with_classes
from sapwood.system import child, writing
from sapwood.system.folders import own_folder

OBJECTIVES = {
    "RMSE": "squared_error",
    "MultiRMSE": "squared_error",
    "MAE": "absolute_error",
    "MAPE": "mape",
    **dict.fromkeys(["Quantile", "Expectile", "Huber"], "identity"),
    "LogCosh": "log_cosh",
    "Poisson": "poisson",
    "Tweedie": "exp",
    "Logloss": "logistic",
    "CrossEntropy": "cross_entropy",
    "MultiClass": "softmax",
    "MultiLogloss": "multilabel",
    **dict.fromkeys(["Focal", "MultiClassOneVsAll", "MultiCrossEntropy"], "sigmoid"),
}
# losses whose labels are classes
CLASSIFIERS = ("Logloss", "MultiClass", "MultiClassOneVsAll")
LABELS: dict[str, Any] = {
    "Integer": np.int64,
    "Float": np.float64,
    "Boolean": np.bool_,
    "String": np.str_,
}
# of reading a .cbm file: bytes, bytes for each of its bytes, s
MAX_MEMORY = 2**30
MAX_GROWTH = 64
MAX_SECONDS = 60
READER = """\
path, converted = sys.argv[1:]
catboost.CatBoost().load_model(path).save_model(converted, format="json")
"""
# a condition holds for x > border, to the right
MISSING_LEFT = {"AsIs": False, "AsFalse": True, "AsTrue": False}


def of_object(model: Any) -> Booster:
    """Read a fitted model of CatBoost."""
    with own_folder() as folder:
        path = folder / "model.json"
        model.save_model(str(path), format="json")
        return of_document(of_json(path.read_bytes()))


def of_file(raw: bytes) -> Booster:
    """Read a .cbm file, through CatBoost in a process of its own: a damaged file may
    end that process.
    """
    with own_folder() as folder:
        path = folder / "model.cbm"
        converted = folder / "model.json"
        writing.write(path, raw)
        try:
            child.run(
                "import catboost",
                READER,
                [str(path), str(converted)],
                seconds=MAX_SECONDS + len(raw) / 1e6,
                n_bytes=MAX_MEMORY + MAX_GROWTH * len(raw),
                folder=folder,
            )
        except child.ChildError as cause:
            if "No module named 'catboost'" in str(cause):
                raise ModelFormatError(
                    "a .cbm file is read through catboost, which is not installed in this Python; install it, or save "
                    "as JSON: model.save_model(path, format='json')."
                ) from cause
            raise ModelFormatError(
                f"catboost cannot read the file: {cause}."
            ) from cause
        if not converted.exists():
            raise ModelFormatError("catboost cannot read the file: it wrote nothing.")
        return of_document(of_json(converted.read_bytes()))


def of_document(found: Document) -> Booster:
    """Read the document of a JSON file, as CatBoost 0.20 and later write it."""
    own = _Columns(found.part("features_info"))
    n_columns = len(own.names)
    match found.items_of("scale_and_bias"):
        case [int() | float() as scale, list() | int() | float() as bias]:
            base = np.atleast_1d(np.array(bias, np.float64))
        case other:
            raise ModelFormatError(f"'scale_and_bias' is {str(other)[:60]}.")
    symmetric = "oblivious_trees" in found
    read = _symmetric if symmetric else _free
    trees = [
        read(tree, own)
        for tree in found.parts("oblivious_trees" if symmetric else "trees")
    ]
    grown = [(tree, k) for nodes in trees for k, tree in enumerate(nodes.trees())]
    n_outputs = max((k for _, k in grown), default=-1) + 1 or len(base)
    for tree, _ in grown:
        tree["value"] = float(scale) * tree["value"]
    loss = _loss(found)
    if loss not in OBJECTIVES:
        raise ModelFormatError(f"loss {loss!r} of CatBoost is not known here.")
    booster = Booster(
        frozen(grown, n_outputs),
        base=np.broadcast_to(
            base if len(base) in (1, n_outputs) else base[:1], (n_outputs,)
        ),
        feature_names=own.names,
        named=own.names
        not in (
            [str(j) for j in range(n_columns)],
            [f"f{j}" for j in range(n_columns)],
        ),
        params={},
        categories=dictionaries(own.categories),
        **described("catboost", loss, OBJECTIVES[loss]),
    )
    return with_classes(booster, _classes(found, loss))


class _Split(NamedTuple):
    column: int
    threshold: float
    missing_left: bool
    left: NDArray[np.int32] | None  # codes of categories; None for a number


class _Columns:
    """The columns of a model: their positions in the table, their names, and their
    splits.
    """

    def __init__(self, features: Document) -> None:
        if any(
            features.get(kind)
            for kind in ("ctrs", "text_features", "embedding_features")
        ):
            raise ModelFormatError(
                "the model has target statistics of categories, or columns of text or embeddings, which are not read. "
                "Train it with one_hot_max_size as large as its categories, or train here: sapwood.train({'recipe': "
                "'catboost'}, ...)."
            )
        numbers = (
            features.parts("float_features") if features.get("float_features") else []
        )
        coded = (
            features.parts("categorical_features")
            if features.get("categorical_features")
            else []
        )
        self.place = [one.count("flat_feature_index") for one in (*numbers, *coded)]
        self.n_numbers, n_columns = len(numbers), len(self.place)
        if sorted(self.place) != list(range(n_columns)):
            raise ModelFormatError(
                "the columns of the model are not numbered one after the other."
            )
        self.names = [f"f{j}" for j in range(n_columns)]
        for one, j in zip((*numbers, *coded), self.place, strict=True):
            self.names[j] = str(one.get("feature_id") or self.names[j])
        self.missing_left = [
            MISSING_LEFT.get(str(one.get("nan_value_treatment")), False)
            for one in numbers
        ]
        texts = {}
        if features.get("cat_features_hash"):
            texts = {
                one.count("hash", 2**32): one.text("value")
                for one in features.parts("cat_features_hash")
            }
        self.one_code: dict[int, NDArray[np.int32]] = {}  # nodes share these
        self.hashes = {}
        self.categories = {}
        for one, j in zip(coded, self.place[len(numbers) :], strict=True):
            hashes = (
                (one.array("values", np.int64) % 2**32).tolist()
                if one.get("values")
                else []
            )
            if not texts.keys() >= set(hashes):
                raise ModelFormatError(
                    "the model has categorical columns of which the file holds hashes and not the values; save it with "
                    "them: model.save_model(path, format='json', pool=...) with the pool it was trained on."
                )
            self.hashes[j] = hashes
            self.categories[j] = Categories(
                range(len(hashes)), [texts[one] for one in hashes]
            )

    def split(self, split: Document) -> _Split:
        """A condition as a split: numbers above a border go right; one category goes
        left, its children turned.
        """
        kind = split.get("split_type", "FloatFeature")
        if kind not in ("FloatFeature", "OneHotFeature"):
            raise ModelFormatError(
                f"the model splits by {str(kind)[:60]}, which is not read."
            )
        of_number = kind == "FloatFeature"
        at = (
            split.count("float_feature_index")
            if of_number
            else split.count("cat_feature_index") + self.n_numbers
        )
        if at >= (self.n_numbers if of_number else len(self.place)):
            raise ModelFormatError(f"a split is on column {at} of {len(self.place)}.")
        column = self.place[at]
        if of_number:
            border = float(rounded_up_to(np.array([split.number("border")]))[0])
            return _Split(column, border, self.missing_left[at], None)
        which = int(split.number("value")) % 2**32
        if which not in self.hashes[column]:
            raise ModelFormatError(
                f"a split is by a category that column {column} does not have."
            )
        code = self.hashes[column].index(which)
        return _Split(
            column,
            0.0,
            False,
            self.one_code.setdefault(code, np.array([code], np.int32)),
        )


def _symmetric(tree: Document, columns: _Columns) -> Nodes:
    """An oblivious tree: the first condition is the lowest bit of a leaf's number, so
    it comes last.
    """
    conditions = tree.parts("splits") if tree.get("splits") else []
    splits = [columns.split(condition) for condition in reversed(conditions)]
    depth = len(splits)
    if depth > 16:
        raise ModelFormatError(
            f"a tree is {depth} levels deep; CatBoost grows 16 at most."
        )
    inner = 2**depth - 1
    leaves = 2**depth
    value = tree.array("leaf_values", np.float64)
    weight = (
        tree.array("leaf_weights", np.float64)
        if "leaf_weights" in tree
        else np.zeros(leaves)
    )
    if len(value) == 0 or len(value) % leaves or len(weight) != leaves:
        raise ModelFormatError(
            f"a tree of {leaves} leaves has {len(value)} values and {len(weight)} weights."
        )
    level = np.repeat(np.arange(depth), 2 ** np.arange(depth))
    cover = np.concatenate([np.zeros(inner), weight])
    for k in range(inner - 1, -1, -1):
        cover[k] = cover[2 * k + 1] + cover[2 * k + 2]
    at = np.arange(inner)

    def laid(which: int, dtype: Any) -> NDArray[Any]:
        per_level = np.array([split[which] for split in splits], dtype)
        return np.concatenate([per_level[level], np.zeros(leaves, dtype)])

    own = [splits[one].left for one in level]
    turned = np.array([left is not None for left in own], np.int64)
    outputs = len(value) // leaves
    return Nodes(
        left=np.concatenate([2 * at + 1 + turned, np.full(leaves, -1)]),
        right=np.concatenate([2 * at + 2 - turned, np.full(leaves, -1)]),
        column=laid(0, np.int64),
        threshold=laid(1, np.float64),
        missing_left=laid(2, np.uint8),
        value=np.concatenate(
            [np.zeros((inner, outputs)), value.reshape(leaves, outputs)]
        ),
        gain=np.zeros(inner + leaves),
        cover=cover,
        count=cover,
        sets={node: left for node, left in enumerate(own) if left is not None},
    )


def _free(tree: Document, columns: _Columns) -> Nodes:
    """A tree of nested nodes, from the policies Depthwise and Lossguide."""
    rows: list[tuple[int, int, int, float, bool, list[float], float]] = []
    sets = {}

    def add(node: Document) -> int:
        at = len(rows)
        if "split" not in node:
            value = node.get("value", 0.0)
            values = [
                float(one) for one in (value if isinstance(value, list) else [value])
            ]
            rows.append(
                (
                    -1,
                    -1,
                    0,
                    0.0,
                    False,
                    values,
                    node.number("weight") if "weight" in node else 0.0,
                )
            )
            return at
        column, threshold, missing_left, codes = columns.split(node.part("split"))
        if codes is not None:
            sets[at] = codes
        rows.append((0, 0, 0, 0.0, False, [], 0.0))
        left = add(node.part("left"))
        right = add(node.part("right"))
        if codes is not None:
            left, right = right, left
        rows[at] = (
            left,
            right,
            column,
            threshold,
            missing_left,
            [],
            rows[left][6] + rows[right][6],
        )
        return at

    add(tree)
    width = max(len(row[5]) for row in rows)
    if any(len(row[5]) != width for row in rows if row[0] < 0):
        raise ModelFormatError("the leaves of a tree have different numbers of values.")
    value = np.array([row[5] or [0.0] * width for row in rows])
    cover = np.array([row[6] for row in rows])
    left, right, column, threshold, missing = (
        np.array([row[k] for row in rows]) for k in range(5)
    )
    return Nodes(
        left,
        right,
        column,
        threshold.astype(float),
        missing,
        value,
        np.zeros(len(rows)),
        cover,
        cover,
        sets,
    )


def _loss(found: Document) -> str:
    """The name of the loss, which is in a JSON string among the training parameters."""
    about = found.get("model_info")
    params = about.get("params") if isinstance(about, dict) else None
    if isinstance(params, str):
        params = parsed(params.encode())
    loss = params.get("loss_function") if isinstance(params, dict) else None
    return str(loss.get("type")) if isinstance(loss, dict) else "RMSE"


def _classes(found: Document, loss: str) -> NDArray[Any] | None:
    """The classes of a classifier, by the order of its scores."""
    about = (
        found.part("model_info").get("class_params") if loss in CLASSIFIERS else None
    )
    if not isinstance(about, dict) or about.get("class_label_type") not in LABELS:
        return None
    names = Document(about).items_of("class_names")
    return np.array(names, LABELS[about["class_label_type"]]) if names else None
