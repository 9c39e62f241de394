"""Write the corpus anew: small files of every format, from the libraries that write
them.

In: nothing. Out: tests/fuzz/corpus. Run where pyarrow, xgboost, lightgbm and catboost
are installed.
"""

import json
import tempfile
import zipfile
from pathlib import Path

import catboost
import formats
import lightgbm
import mutators
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import xgboost

import sapwood as sw
from sapwood.model import compact

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 3))
X[::9, 1] = np.nan
y = X[:, 0] + rng.normal(0, 0.1, 60)
town = pd.Series(rng.choice(["Bern", "Lyon", "Rome"], 60), dtype="category")
frame = pd.DataFrame(X, columns=list("abc")).assign(t=town)
few = {"n_estimators": 3, "max_leaves": 5, "min_samples_leaf": 3}


def write(name: str, data: bytes) -> None:
    (formats.CORPUS / name).write_bytes(data)


write(
    "numbers.sapwood",
    sw.train({**few, "objective": "logistic"}, sw.Dataset(X, y > 0)).to_bytes(),
)
write("categories.sapwood", sw.train(few, sw.Dataset(frame, y)).to_bytes())
linear = {
    **few,
    "linear_leaves": True,
    "linear_units": "standard",
    "grow_policy": "symmetric",
}
write(
    "linear.sapwood", sw.train(linear, sw.Dataset(X, y, linear_leaves=True)).to_bytes()
)
late = frame.assign(
    said=[
        " ".join(rng.choice(["red", "wine", "from", "north", "old"], 4))
        for _ in range(60)
    ],
    when=pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 9_000, 60), "h"),
    place=list(rng.normal(size=(60, 2))),
)
more = {"text_features": ["said"], "embedding_features": ["place"]}
write("derived.sapwood", sw.train(few, sw.Dataset(late, y, **more)).to_bytes())
three = np.digitize(y, [-0.5, 0.5])
vector = {**few, "objective": "softmax", "multi_strategy": "multi_output_tree"}
write("classes.sapwood", sw.train(vector, sw.Dataset(X, three)).to_bytes())
# so that a small model has the format of a large one
compact.MIN_BYTES = compact.ENTRY = 0
both = {
    **vector,
    "linear_leaves": True,
    "n_estimators": 12,
    "category_encoding": "partition",
}
write(
    "compact.sapwood",
    sw.train(both, sw.Dataset(frame, three, linear_leaves=True)).to_bytes(),
)
compact.MIN_BYTES = 1 << 18
compact.ENTRY = 64
times = np.exp(y), rng.random(60) < 0.7
write("survival.sapwood", sw.SapwoodSurvival(**few).fit(X, times).booster_.to_bytes())
cox = sw.SapwoodSurvival(model="cox", **few).fit(X[:20], (times[0][:20], times[1][:20]))
write("cox.sapwood", cox.booster_.to_bytes())
write(
    "distribution.sapwood",
    sw.SapwoodDistribution("normal", **few).fit(X, y).booster_.to_bytes(),
)
sw.Dataset(frame, y).save(formats.CORPUS / "dataset.sapwood")
with tempfile.TemporaryDirectory() as folder:
    sw.Dataset.from_batches(lambda: iter([(frame, y)]), store=Path(folder, "s"))
    kept = {
        path.name: path.read_bytes() for path in sorted(Path(folder, "s").iterdir())
    }
    write("store.zip", mutators.archive_of(kept, zipfile.ZIP_DEFLATED))
dated = frame.assign(when=late["when"], then=late["when"] + pd.Timedelta("3D"))
with tempfile.TemporaryDirectory() as folder:
    parts = [(dated, y, np.linspace(0.5, 1.5, 60))]
    sw.Dataset.from_batches(lambda: iter(parts), store=Path(folder, "s"))
    kept = {
        path.name: path.read_bytes() for path in sorted(Path(folder, "s").iterdir())
    }
    write("store_full.zip", mutators.archive_of(kept, zipfile.ZIP_DEFLATED))
path = Path(formats.CORPUS, "checkpoint.sapwood")
path.unlink(missing_ok=True)
sw.train({**formats.CHECKPOINTED, "checkpoint": path}, formats.checkpoint_data())
for name, table, more in (
    ("xgboost", X, {}),
    ("xgboost_categories", frame, {"enable_categorical": True}),
):
    model = xgboost.XGBRegressor(n_estimators=2, max_depth=3, **more).fit(table, y)
    write(
        f"{name}.json",
        json.dumps(
            json.loads(model.get_booster().save_raw("json")), separators=(",", ":")
        ).encode(),
    )
model = lightgbm.LGBMRegressor(
    n_estimators=2, num_leaves=4, min_child_samples=3, verbose=-1
).fit(frame, y)
write(
    "lightgbm.txt",
    model.booster_.model_to_string().split("\nparameters:")[0].encode() + b"\n",
)
model = catboost.CatBoostRegressor(
    iterations=2, depth=2, verbose=False, allow_writing_files=False
)
model.fit(X, y).save_model(str(formats.CORPUS / "catboost.json"), format="json")
table = pa.Table.from_pandas(frame[:12])
with (
    pa.OSFile(str(formats.CORPUS / "table.arrow"), "wb") as file,
    pa.ipc.new_stream(file, table.schema) as stream,
):
    stream.write_table(table)
pyarrow.parquet.write_table(table, formats.CORPUS / "table.parquet")
plain = frame[:12].rename(columns={"t": "town"}).astype({"town": str})
plain.to_csv(formats.CORPUS / "table.csv", index=False, lineterminator="\n")
plain.to_json(formats.CORPUS / "table.jsonl", orient="records", lines=True)
pyarrow.feather.write_feather(
    pa.Table.from_pandas(plain), formats.CORPUS / "table.feather", compression="lz4"
)
formats.table_formats.reported()[1].to_csv(
    formats.CORPUS / "reported.csv", index=False, lineterminator="\n"
)
