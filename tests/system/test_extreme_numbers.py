"""Numbers near the largest and the smallest, and names that no file holds: answers or
errors of ours, no warnings.
"""

import resource
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sapwood as sw
from sapwood.data.streaming import store
from sapwood.errors import DataError, ParameterError
from sapwood.metric.curves import standard_error
from sapwood.report import spread

N_ROWS = 120
RNG = np.random.default_rng(0)
PLAIN = RNG.normal(size=(N_ROWS, 3))
TARGET = PLAIN[:, 1] + RNG.normal(0, 0.1, N_ROWS)
SIGNS = np.where(RNG.random(N_ROWS) < 0.5, 1.7e308, -1.7e308)
COLUMNS = {
    "1e308": np.full(N_ROWS, 1e308),
    "-1e308": np.full(N_ROWS, -1e308),
    "both signs": SIGNS,
    "1e-310": PLAIN[:, 0] * 1e-200 * 1e-110,
    "infinite": RNG.choice([np.inf, -np.inf, np.nan, 1.0, 1.7e308, -1.7e308], N_ROWS),
    "one step apart": np.where(PLAIN[:, 0] > 0, 1.0, np.nextafter(1.0, 2.0)),
    "all sizes": PLAIN[:, 0] * 10.0 ** RNG.integers(-300, 300, N_ROWS),
}


@pytest.fixture(autouse=True)
def no_warning() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        yield


@pytest.fixture(params=list(COLUMNS))
def table(request: pytest.FixtureRequest) -> np.ndarray[Any, Any]:
    found = PLAIN.copy()
    found[:, 0] = COLUMNS[request.param]
    return found


@pytest.mark.parametrize("linear", [False, True])
def test_a_report_takes_numbers_of_any_size(
    table: np.ndarray[Any, Any], linear: bool
) -> None:
    for rows in (table, PLAIN):
        booster = (
            sw.SapwoodRegressor(
                n_estimators=4, min_samples_leaf=3, linear_leaves=linear
            )
            .fit(rows, TARGET)
            .booster_
        )
        assert "</html>" in booster.report(table, TARGET, train=(PLAIN, TARGET))
        assert "</html>" in booster.report(PLAIN, TARGET, train=(table, TARGET))


@pytest.mark.parametrize("scale", [1e99, 1e-99])
def test_a_report_and_exports_take_labels_of_any_size(
    scale: float, tmp_path: Path
) -> None:
    booster = (
        sw.SapwoodRegressor(n_estimators=4, min_samples_leaf=3)
        .fit(PLAIN, TARGET * scale)
        .booster_
    )
    assert "</html>" in booster.report(PLAIN, TARGET * scale)
    booster.export(tmp_path / "model.c")
    for name in ("model.json", "model.onnx"):
        if scale > 1:
            with pytest.raises(
                ParameterError,
                match=r"the model adds .*e\+9. in a leaf, and .* holds numbers up to 3.4e38",
            ):
                booster.export(tmp_path / name)
        else:
            booster.export(tmp_path / name)


@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize("trained_on", ["them", "others"])
def test_plots_and_importances_take_numbers_of_any_size(
    table: np.ndarray[Any, Any], linear: bool, trained_on: str
) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    rows = table if trained_on == "them" else PLAIN
    model = sw.SapwoodRegressor(
        n_estimators=4, min_samples_leaf=3, linear_leaves=linear
    ).fit(rows, TARGET)
    told = model.booster_.explain(table)
    plots = [
        lambda: sw.plot.partial_dependence(model, table, 0),
        lambda: sw.plot.partial_dependence(model, table, [0, 1]),
        lambda: sw.plot.beeswarm(told),
        lambda: sw.plot.waterfall(told),
        lambda: sw.plot.dependence(told, 0, 1),
        lambda: sw.plot.dependence(told, 1, 0),
        lambda: sw.plot.residuals(model, table, TARGET),
        lambda: sw.plot.predicted_actual(model, table, TARGET),
    ]
    for draw in plots:
        draw().figure.canvas.draw()
        plt.close("all")
    model.score(table, TARGET)
    for kind in ("permutation", "sage"):
        try:
            model.booster_.importance(kind, table, TARGET)
        except DataError as error:  # where predictions overflow
            assert "cannot be measured" in str(error)


def test_metrics_of_errors_that_overflow_are_an_error_of_ours() -> None:
    huge = np.array([1e300, -1e300])
    for name in ("mse", "expectile"):
        with pytest.raises(DataError, match="only finite values can be summed"):
            getattr(sw.metric, name)(np.zeros(2), huge, None)
    assert sw.metric.rmse(np.zeros(2), huge, None) == pytest.approx(1e300)


def test_the_standard_error_of_large_numbers_does_not_overflow() -> None:
    values = np.arange(9.0)
    assert standard_error(values * 2.0**1000) == standard_error(values) * 2.0**1000
    assert standard_error(values * 2.0**-1040) == pytest.approx(
        standard_error(values) * 2.0**-1040
    )
    assert standard_error(np.zeros(5)) == 0.0


def test_histograms_count_every_value_once() -> None:
    for values in (*COLUMNS.values(), PLAIN[:, 0], np.array([5e-324, 0.0])):
        finite = values[np.isfinite(values)]
        counts, edges = spread.histogram(finite, 12)
        assert counts.sum() == len(finite)
        assert len(edges) == len(counts) + 1
        assert np.isfinite(edges).all()
    counts, edges = spread.histogram(PLAIN[:, 0], 12)
    assert counts.tolist() == np.histogram(PLAIN[:, 0], 12)[0].tolist()
    assert edges == pytest.approx(np.histogram(PLAIN[:, 0], 12)[1])


def test_quantiles_of_large_numbers_are_those_of_the_same_numbers_in_another_unit() -> (
    None
):
    values = SIGNS * RNG.random(N_ROWS)
    wanted = np.quantile(values / 16, [0.1, 0.5, 0.9]) * 16
    assert spread.quantiles(values, [0.1, 0.5, 0.9]) == pytest.approx(wanted)
    assert spread.quantiles(PLAIN[:, 0], 0.3) == np.quantile(PLAIN[:, 0], 0.3)


@pytest.mark.parametrize("size", [5e-324, 1e-310, 1e-101])
@pytest.mark.parametrize("more", [{"n_estimators": 3}, {"time_limit": 2}])
def test_weights_that_vanish_are_an_error_that_says_so(
    size: float, more: dict[str, Any]
) -> None:
    with pytest.raises(
        DataError,
        match=r"sample_weight is at most .*weights below 1e-100 are 0. Scale them",
    ):
        sw.SapwoodRegressor(**more).fit(PLAIN, TARGET, np.full(N_ROWS, size))


def test_weights_of_which_some_vanish_are_taken() -> None:
    weight = np.where(np.arange(N_ROWS) % 2, 1.0, 1e-310)
    sw.SapwoodRegressor(n_estimators=3).fit(PLAIN, TARGET, weight)


def test_a_name_that_no_file_holds_is_an_error_of_the_data() -> None:
    with pytest.raises(
        DataError,
        match=r"the name of column 0, '\\ud800', has half of a surrogate pair",
    ):
        sw.Dataset(PLAIN, TARGET, feature_names=["\ud800", "b", "c"])
    with pytest.raises(DataError, match="half of a surrogate pair"):
        sw.Dataset.from_batches(lambda: iter([({"\udcff": PLAIN[:, 0]}, TARGET)]))


def test_names_given_twice_have_the_same_error_in_fit_and_later() -> None:
    twice = pd.DataFrame(PLAIN, columns=["a", "b", "b"])
    once = pd.DataFrame(PLAIN, columns=["a", "b", "c"])
    model = sw.SapwoodRegressor(n_estimators=2).fit(once, TARGET)
    nameless = sw.SapwoodRegressor(n_estimators=2).fit(PLAIN, TARGET)
    attempts = [
        lambda: sw.SapwoodRegressor(n_estimators=2).fit(twice, TARGET),
        lambda: sw.SapwoodRegressor(n_estimators=2).fit(
            once, TARGET, eval_set=[(twice, TARGET)]
        ),
        lambda: model.predict(twice),
        lambda: nameless.predict(twice),
        lambda: model.booster_.explain(twice),
    ]
    for attempt in attempts:
        with pytest.raises(
            DataError,
            match=r"names of the columns of \w+ must be unique: 'b' 2 times. Rename",
        ):
            attempt()


@pytest.mark.parametrize(
    "part", ["since:99", "since:1", "since:x", "since:\u00b2", "since:-1", "century"]
)
def test_a_store_with_parts_of_columns_that_are_not_there_is_an_error(
    part: str, tmp_path: Path
) -> None:
    when = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(N_ROWS), "h")
    frame = pd.DataFrame({"when": when, "a": PLAIN[:, 0]})
    sw.Dataset.from_batches(lambda: iter([(frame, TARGET)]), store=tmp_path / "s")
    head = store.read_head(tmp_path / "s")
    one = head.learned.times[0]
    object.__setattr__(one, "parts", (part, *one.parts[1:]))
    (tmp_path / "s" / store.HEAD).write_bytes(head.pack())
    with pytest.raises(
        DataError,
        match="is not the head of a store: it breaks the rule 'parts of times are some of",
    ):
        sw.Dataset.open(tmp_path / "s")


FULL = """
import resource, signal, sys, numpy, sapwood
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
X = numpy.random.default_rng(0).normal(size=(600, 5))
data, params = sapwood.Dataset(X, label=X[:, 0]), {"n_estimators": 30, "n_jobs": 1}
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
try:
    sapwood.train(params, data, checkpoint=sys.argv[1], every=1)
except OSError as error:
    print(error.filename)
"""


@pytest.mark.parametrize("size", [100, 3_000, 20_000])
def test_a_full_disk_names_the_checkpoint_and_nothing_follows(
    size: int, tmp_path: Path
) -> None:
    assert hasattr(resource, "RLIMIT_FSIZE")
    path = str(tmp_path / "run")
    ended = subprocess.run(
        [sys.executable, "-c", FULL, path, str(size)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert (ended.stdout, ended.stderr) == (f"{path}\n", "")
