"""A call of every public function and method, and for each of its arguments values that
must change what it gives.

Out: by qualified name, a `Call`; `system/test_arguments.py` walks the signatures and
asks for every argument.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import sapwood as sw
from arguments import BINARY, FRAME, GROUP, MANY, SCORE, THREE, TWO_TARGETS, X

Given = dict[str, Any]
ANY = object()  # stands for the path of a file that can be written


@dataclass(frozen=True)
class Call:
    """A function, the arguments of a call that works, and by argument others, in a
    context of further arguments.
    """

    function: Callable[..., Any]
    base: Callable[[], Given]
    changed: dict[str, list[tuple[Given, list[Any]]]] = field(default_factory=dict)


CALLS: dict[str, Call] = {}
# files of a user in the folder of each call
OCCUPIED = ("mine.sapwood", "mine.json", "mine.html")
FORCED: dict[str, list[tuple[Given, list[Any]]]] = {
    name: [({"path": name}, [True])] for name in OCCUPIED
}  # `force` replaces them


def call(
    name: str,
    function: Callable[..., Any],
    base: Callable[[], Given] | Given | None = None,
    /,
    **changed: Any,
) -> None:
    """Enter a call. A changed argument is a list of values, or a list of pairs of a
    context and such a list.
    """
    made = base if callable(base) else lambda: dict(base or {})
    contexts = {
        argument: values
        if values and isinstance(values[0], tuple) and isinstance(values[0][1], list)
        else [({}, values)]
        for argument, values in changed.items()
    }
    assert name not in CALLS, name
    CALLS[name] = Call(function, made, contexts)


LEAST = {"n_estimators": 4, "min_child_weight": 0, "n_jobs": 1}
NAMED = pd.DataFrame(X, columns=[*"abcd"])
HALF = slice(0, 60)


@cache
def number() -> sw.Booster:
    data = sw.Dataset(NAMED, SCORE)
    held = sw.Dataset(NAMED[:40], SCORE[:40], reference=data)
    return sw.train(
        {**LEAST, "eval_metric": ["rmse", "mae"]},
        data,
        valid={"one": held, "two": data},
    )


@cache
def classes() -> sw.Booster:
    return sw.train({**LEAST, "objective": "softmax"}, sw.Dataset(NAMED, THREE))


@cache
def crossed() -> sw.Booster:
    data = sw.Dataset(NAMED.fillna(0), SCORE, linear_leaves=True).with_crosses(
        [("product", "a", "b")], linear_leaves=False
    )
    return sw.train(LEAST, data)


@cache
def binary() -> sw.Booster:
    return sw.train({**LEAST, "objective": "logistic"}, sw.Dataset(NAMED, BINARY))


@cache
def coded() -> sw.Booster:
    return sw.train(
        {**LEAST, "min_data_per_group": 1}, sw.Dataset(FRAME[["number", "few"]], SCORE)
    )


@cache
def linked() -> sw.Booster:
    class Own:
        def grad_hess(self, y: Any, score: Any) -> Any:
            return score - y, np.ones_like(score)

        def link(self, score: Any) -> Any:
            return 2 * score

    return sw.load(
        sw.train({**LEAST, "objective": Own()}, sw.Dataset(NAMED, SCORE)).to_bytes()
    )


# ---- Functions -----------------------------------------------------------------------


def data(y: Any = SCORE, **more: Any) -> sw.Dataset:
    return sw.Dataset(X, y, **more)


def _held() -> sw.Dataset:
    return sw.Dataset(X[HALF], SCORE[HALF])


call(
    "train",
    sw.train,
    lambda: {"params": dict(LEAST), "data": data()},
    params=[{**LEAST, "max_leaves": 3}],
    data=[data(SCORE * 2), 3],
    n_estimators=[({"params": {}}, [3, 0])],
    valid=[({}, [_held(), [(_held(), "name")], 3])],
    callbacks=[[sw.callback.progress(1)], 3],
    init_model=[number(), "no file", 3],
)
call(
    "cv",
    sw.cv,
    lambda: {"params": dict(LEAST), "data": data(), "n_folds": 3},
    params=[{**LEAST, "max_leaves": 3}],
    data=[data(SCORE * 2), 3],
    n_estimators=[({"params": {}}, [3, 0])],
    n_folds=[2, 1, 1000],
    folds=[[(np.arange(60), np.arange(60, 120)), (np.arange(60, 120), np.arange(60))]],
    stratified=[
        ({}, [True]),
        ({"params": {"objective": "logistic"}, "data": data(BINARY)}, [False]),
    ],
    shuffle=[False],
    callbacks=[[sw.callback.progress(1)], 3],
)
call(
    "load",
    sw.load,
    lambda: {"source": number().to_bytes()},
    source=[classes().to_bytes(), "no file", 3],
)
call("doctor", lambda: sw.doctor()[:1])
call(
    "estimate_cost",
    sw.estimate_cost,
    {"n_rows": 10_000, "n_columns": 5},
    params=[{"objective": "quantile"}, {"max_leaves": 1000}, 3],
    data=[({}, [data()]), ({"n_rows": None, "n_columns": None}, [data(), 3])],
    n_rows=[20_000_000, 0],
    n_columns=[5_000, 0],
    n_outputs=[3, 0],
)


def stopped(**given: Any) -> Any:
    """A training with early stopping."""
    rows = data()
    sets = {
        "one": sw.Dataset(X[HALF], -SCORE[HALF], reference=rows),
        "two": sw.Dataset(X[60:], SCORE[60:] + np.cos(9 * SCORE[60:]), reference=rows),
    }
    params = {
        **LEAST,
        "n_estimators": 60,
        "learning_rate": 0.5,
        "eval_metric": ["rmse", "mape"],
    }
    return sw.train(params, rows, valid=sets, callbacks=[sw.early_stopping(**given)])


call(
    "callback.early_stopping",
    stopped,
    {"rounds": 5},
    rounds=[1, 0, "x"],
    metric=[1, "no metric", 7],
    min_delta=[0.1, -1],
    data=[({}, ["one", "no set"])],
    stopping_rounds=[({"rounds": None}, [1, 0])],
    first_metric_only=[True],
    verbose=[True],
)


def called_back(make: Callable[..., Any]) -> Callable[..., Any]:
    """A training with a callback that is made of some arguments."""

    def run(**given: Any) -> Any:
        rows = data()
        model = sw.train(
            {**LEAST, "n_estimators": 6, "eval_metric": ["rmse", "mae"]},
            rows,
            valid=[rows],
            callbacks=[make(**given)],
        )
        return model, {
            name: vars(one) if isinstance(one, Trial) else one
            for name, one in given.items()
        }

    return run


class Trial:
    """A trial of Optuna that notes what is reported."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def report(self, value: float, step: int) -> None:
        self.seen.append((value, step))

    def should_prune(self) -> bool:
        return False


def written(values: Any, index: int) -> None:
    print(values, index)


call(
    "callback.progress",
    called_back(sw.callback.progress),
    {"every": 2},
    every=[1, 3, True, 0, "x"],
)
call(
    "callback.log",
    called_back(sw.callback.log),
    {"write": written, "every": 2},
    write=[lambda values, index: None, 3],
    every=[1, 3, 0, "x"],
)
call(
    "callback.prune",
    called_back(sw.callback.prune),
    lambda: {"trial": Trial(), "metric": "rmse"},
    trial=[3],
    metric=["mae", "no metric"],
)
call(
    "callback.record",
    called_back(sw.callback.record),
    lambda: {"into": {}},
    into=[{"x": {}}, 3],
)
call(
    "callback.time_limit",
    called_back(sw.callback.time_limit),
    {"seconds": 1e6},
    seconds=[0, -1, "x"],
)

# ---- Datasets ------------------------------------------------------------------------


CATEGORIES = FRAME[["number", "few", "code"]]
OTHER = sw.Dataset(CATEGORIES[::-1].head(80), SCORE[:80])
OF_BINS: dict[str, Any] = {
    "feature_names": [({"data": X}, [["p", "q", "r", "s"], ["p"], 3])],
    "max_bins": [3, 1, "x"],
    "min_samples_bin": [({"data": MANY, "label": None}, [1, 0])],
    "tree_method": ["exact", "x"],
    "linear_leaves": [True, 3],
    "zero_as_missing": [({"data": X.round()}, [True, 3])],
    "categorical_features": [["code"], ["nobody"], 3.5],
    "reference": [OTHER, 3],
    "n_jobs": [0, "x"],
}
MORE: dict[str, Any] = {
    "device": ["cuda", "x"],
    "recipe": [({"data": MANY, "label": None}, ["lightgbm", "x"])],
    "date_features": [({"data": FRAME}, [None, ["year"], "x"])],
    "text_features": [({}, [["few"], ["nobody"]])],
    "embedding_features": [({}, [["few"], ["nobody"]])],
    "params": [{"max_bin": 3}, 3],
}


def kept(**given: Any) -> Any:
    """A dataset, and whether it keeps its table after it was trained on."""
    made = sw.Dataset(**given)
    if "free_raw_data" in given:
        sw.train(LEAST, made)
    return made, made.kept is not None and made.kept._arguments is not None


VECTORS: dict[str, Any] = {
    "label": [SCORE * 2, SCORE[1:], "x"],
    "weight": [np.arange(120), -SCORE, SCORE[1:]],
    "init_score": [SCORE, TWO_TARGETS, SCORE[1:]],
    "group": [GROUP, [60, 60], [1, 2]],
}
call(
    "Dataset",
    kept,
    lambda: {"data": CATEGORIES, "label": SCORE},
    data=[CATEGORIES[::-1], 3, None],
    **VECTORS,
    **OF_BINS,
    **MORE,
    free_raw_data=[({"free_raw_data": True}, [False])],
)


def in_chunks(
    chunks: Any = None, data: Any = None, label: Any = SCORE, **given: Any
) -> Any:
    table = data if chunks is None else chunks
    if chunks is None:
        half = len(table) // 2
        parts = [table[:half], table[half:]]
        chunks = (
            parts
            if label is None
            else [(parts[0], label[:half]), (parts[1], label[half:])]
        )
    return sw.Dataset.from_chunks(chunks, **given)


call(
    "Dataset.from_chunks",
    in_chunks,
    lambda: {"data": CATEGORIES},
    chunks=[[X, X], [], 3],
    init_score=VECTORS["init_score"],
    group=VECTORS["group"],
    **OF_BINS,
    **MORE,
)


def of_files(paths: Any = "a.parquet", **given: Any) -> Any:
    FRAME.drop(columns="date").assign(
        y=SCORE, w=np.arange(120) % 3, g=GROUP, s=SCORE * 2
    ).to_parquet("a.parquet")
    FRAME.drop(columns="date").assign(y=SCORE, w=1, g=GROUP, s=SCORE).to_parquet(
        "b.parquet"
    )
    return sw.Dataset.from_files(paths, **given)


OF_STREAMS: dict[str, Any] = {
    "label": ["s", "nobody", 3, None],
    "weight": ["w", "nobody", 3],
    "init_score": ["s", "nobody", 3],
    "group": ["g", "nobody", 3],
    "store": ["folder", 3],
    "memory_limit": ["2GB", "x", 10],
    "n_jobs": [0, "x"],
    "reference": [({}, [3])],
    "max_bins": [3, 1],
    "min_samples_bin": [0],
    "zero_as_missing": [True, 3],
    "categorical_features": [["code"], 3.5],
    "feature_names": [["a"], 3],
    "recipe": ["x"],
    "device": ["cuda"],
    "tree_method": ["exact"],
    "linear_leaves": [True],
    "text_features": [["nobody"]],
    "embedding_features": [["nobody"]],
}
call(
    "Streamed.from_files",
    of_files,
    {"label": "y"},
    paths=["b.parquet", ["a.parquet", "b.parquet"], "none.csv", 3],
    columns=[["number", "few"], ["nobody"], 3],
    **OF_STREAMS,
)


def of_batches(batches: Any = None, **given: Any) -> Any:
    table = FRAME.drop(columns="date").assign(
        y=SCORE, w=np.arange(120) % 3, g=GROUP, s=SCORE * 2
    )
    return sw.Dataset.from_batches(
        [table[:60], table[60:]] if batches is None else batches, **given
    )


call(
    "Streamed.from_batches",
    of_batches,
    {"label": "y"},
    batches=[[FRAME.assign(y=SCORE)[:50]], [], 3],
    **OF_STREAMS,
)


def opened(store: Any = "made", broken: bool = False, **given: Any) -> Any:
    made = Path("made")
    if not made.exists():
        of_batches(label="y", store="made")
        of_batches(label="s", store="other")
    if broken:
        longest = max(made.iterdir(), key=lambda file: file.stat().st_size)
        raw = bytearray(longest.read_bytes())
        raw[-1] ^= 1
        longest.write_bytes(raw)
    return sw.Dataset.open(store, **given)


call(
    "Streamed.open",
    opened,
    {},
    store=["other", "none", 3],
    memory_limit=["2GB", "x"],
    n_jobs=[0],
    verify=[({"broken": True}, [False])],
)


def loaded(path: Any = "d", **given: Any) -> Any:
    data().save("d")
    data(SCORE * 2).save("e")
    return sw.Dataset.load(path, **given)


call("Dataset.load", loaded, {}, path=["e", "none", 3], n_jobs=[0])
call(
    "Dataset.save",
    lambda **given: data().save(**given),
    {"path": "a"},
    path=["b", 3],
    force=FORCED["mine.sapwood"],
)
call("Dataset.fingerprint", lambda: data().fingerprint())
call("Dataset.construct", lambda: data().construct())
call("Dataset.get_feature_name", lambda: data().get_feature_name())
call("Dataset.num_feature", lambda: data().num_feature())
call("Dataset.num_data", lambda: data().num_data())
call(
    "with_weight",
    lambda **given: data().with_weight(**given),
    {"weight": np.ones(120)},
    weight=VECTORS["weight"],
)
call("without_values", lambda: data(linear_leaves=True).without_values())
call(
    "with_crosses",
    lambda **given: data(linear_leaves=True).with_crosses(**given),
    {"crosses": [("ratio", 0, 1)]},
    crosses=[[("ratio", 1, 0)], [("x", 0, 1)], 3],
    linear_leaves=[False],
)
call(
    "LabelView.get_field",
    lambda **given: data().get_field(**given),
    {"name": "label"},
    name=["weight", "x"],
)
call("LabelView.get_label", lambda: data().get_label())
call("LabelView.get_weight", lambda: data().get_weight())


def used(table: Any) -> Any:
    """The dataset of a table of a peer."""
    made = table.dataset()
    return made


call(
    "DMatrix",
    lambda **given: used(sw.DMatrix(**given)),
    {"data": X, "label": SCORE},
    data=[X[::-1], 3],
    label=VECTORS["label"],
    weight=VECTORS["weight"],
    base_margin=VECTORS["init_score"],
    feature_names=[["p", "q", "r", "s"], ["p"]],
    feature_types=[({"data": X.round()}, [["c", "q", "q", "q"], ["c"]])],
    group=VECTORS["group"],
    qid=[GROUP, [1, 2]],
    enable_categorical=[({"data": CATEGORIES}, [False])],
)
call(
    "Pool",
    lambda **given: used(sw.Pool(**given)),
    {"data": X, "label": SCORE},
    data=[X[::-1], 3],
    label=VECTORS["label"],
    weight=VECTORS["weight"],
    baseline=VECTORS["init_score"],
    feature_names=[["p", "q", "r", "s"], ["p"]],
    cat_features=[({"data": CATEGORIES}, [["code"], ["nobody"]])],
    group_id=VECTORS["group"],
)
call("Pool.is_empty_", lambda: sw.Pool(X).is_empty_())
call(
    "Deferred.dataset",
    lambda **given: sw.DMatrix(X, SCORE).dataset(**given),
    {},
    params=[{"max_bin": 3}],
    reference=[sw.Dataset(X[:50], SCORE[:50]), 3],
)
for setter, argument, field_ in (
    ("set_label", "label", "label"),
    ("set_weight", "weight", "weight"),
    ("set_base_margin", "margin", "init_score"),
    ("set_group", "group", "group"),
):

    def set_one(setter: str = setter, field_: str = field_, **given: Any) -> Any:
        table = sw.DMatrix(X, SCORE)
        getattr(table, setter)(**given)
        return table.get_field(field_)

    call(
        f"Deferred.{setter}",
        set_one,
        {argument: np.repeat(1.0, 120)},
        **{argument: [SCORE.round() ** 2]},
    )
call("Deferred.set_info", lambda **given: vars(sw.DMatrix(X, SCORE)), {})
for name in ("num_data", "get_label", "num_col"):
    call(f"Deferred.{name}", lambda name=name: getattr(sw.DMatrix(X, SCORE), name)())
