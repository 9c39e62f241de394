"""Callbacks: what they see, how they stop, and the ready-made ones."""

import dataclasses
from typing import Any

import numpy as np
import pytest

from sapwood import Dataset, callback, train
from sapwood.boost.round.callback import Round
from sapwood.errors import DivergedError, ParameterError
from sapwood.metric import METRICS, Metric

rng = np.random.default_rng(4)
X = rng.standard_normal((100, 2))
Y = X[:, 0] + 0.1 * rng.standard_normal(100)
DATA = Dataset(X, Y)


def a_round(
    index: int,
    values: dict[str, float],
    metrics: tuple[Metric, ...] = (METRICS["rmse"],),
    history: dict[str, Any] | None = None,
) -> Round:
    measured = {"early": {"rmse": -index}, "late": values} if values else {}
    return Round(
        index, {}, metrics, measured, False, {} if history is None else history, None
    )


# --------------------------------------------------------------------------------------
# the round
def test_every_round_is_shown_once_and_cannot_be_changed() -> None:
    seen: list[Round] = []
    booster = train(
        {"n_estimators": 4, "eta": 0.3}, DATA, valid=DATA, callbacks=[seen.append]
    )
    assert [view.index for view in seen] == [0, 1, 2, 3]
    assert [view.last for view in seen] == [False, False, False, True]
    assert [view.measured["valid"]["rmse"] for view in seen] == booster.history[
        "valid"
    ]["rmse"]
    assert seen[-1].params["learning_rate"] == 0.3
    with pytest.raises(TypeError):
        seen[0].params["learning_rate"] = 1  # type: ignore[index]
    with pytest.raises(dataclasses.FrozenInstanceError):
        seen[0].index = 3  # type: ignore[misc]
    seen[0].history["valid"].clear()
    assert seen[0].history == {
        "valid": {"rmse": tuple(booster.history["valid"]["rmse"])}
    }


def test_the_booster_so_far() -> None:
    kept: list[Any] = []
    train({"n_estimators": 3}, DATA, callbacks=[lambda view: kept.append(view.booster)])
    for n_rounds, booster in enumerate(kept, 1):
        assert booster.to_bytes() == train({"n_estimators": n_rounds}, DATA).to_bytes()


def test_true_stops_and_every_callback_still_sees_the_round() -> None:
    seen: list[tuple[int, bool]] = []
    stop = lambda view: view.index == 2  # noqa: E731
    booster = train(
        {"n_estimators": 9},
        DATA,
        callbacks=[stop, lambda view: seen.append((view.index, view.last))],
    )
    assert booster.n_rounds == 3 and booster.best_round is None
    assert seen == [(0, False), (1, False), (2, True)]


def test_rounds_count_from_where_the_model_was() -> None:
    seen: list[int] = []
    train(
        {"n_estimators": 2},
        DATA,
        init_model=train({"n_estimators": 3}, DATA),
        callbacks=[lambda v: seen.append(v.index)],
    )
    assert seen == [3, 4]


def test_an_exception_comes_out_as_it_is() -> None:
    def interrupt(view: Round) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train({}, DATA, callbacks=[interrupt])
    assert train({"n_estimators": 2}, DATA).n_rounds == 2


# --------------------------------------------------------------------------------------
# ready-made
def watch(
    stopper: Any, values: list[float], metric: Metric = METRICS["rmse"], first: int = 0
) -> int:
    """Show one value a round; after how many rounds it stops."""
    training: dict[str, Any] = {}
    for i, value in enumerate(values):
        if stopper(
            a_round(first + i, {metric.name: value}, (metric,), history=training)
        ):
            return i + 1
    return -1


def test_early_stopping_waits() -> None:
    stopper: Any = callback.early_stopping(2)
    assert watch(stopper, [5, 4, 4, 4, 3]) == 4 and stopper.best_round == 2
    # reused: begins anew
    assert watch(stopper, [9, 8, 9, 7, 7.5, 7]) == 6 and stopper.best_round == 4


def test_early_stopping_knows_the_direction() -> None:
    stopper: Any = callback.early_stopping(2)
    assert (
        watch(stopper, [0.5, 0.6, 0.6, 0.5], METRICS["auc"]) == 4
        and stopper.best_round == 2
    )


def test_early_stopping_by_more_than() -> None:
    stopper: Any = callback.early_stopping(2, min_delta=1)
    assert watch(stopper, [5, 4.5, 4, 3.9]) == 3 and stopper.best_round == 1


def test_nan_is_never_better() -> None:
    stopper: Any = callback.early_stopping(2)
    assert watch(stopper, [np.nan, 3, np.nan, np.nan]) == 4 and stopper.best_round == 2
    assert watch(stopper, [np.nan, np.nan, 1]) == 2 and stopper.best_round is None


def test_early_stopping_from_the_middle_of_a_model() -> None:
    stopper: Any = callback.early_stopping(3)
    assert watch(stopper, [2, 1, 2, 2, 2], first=10) == 5 and stopper.best_round == 12


def test_early_stopping_on_another_metric_decides_what_is_kept() -> None:
    data = Dataset(X[:60], Y[:60])
    held = Dataset(X[60:], Y[60:], reference=data)
    params = {"n_estimators": 200, "eta": 0.5, "eval_metric": ["rmse", "mae"]}
    booster = train(
        params, data, valid=held, callbacks=[callback.early_stopping(3, metric="mae")]
    )
    assert (
        booster.best_round
        == booster.n_rounds
        == int(np.argmin(booster.history["valid"]["mae"])) + 1
    )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: callback.early_stopping(0), "rounds=0 is too small"),
        (lambda: callback.early_stopping(2, min_delta=-1), "min_delta=-1 is too small"),
        (lambda: callback.early_stopping(2)(a_round(0, {})), "needs validation rows"),
        (
            lambda: callback.early_stopping(2, metric="mse")(a_round(0, {"rmse": 1.0})),
            "'mse', which is not measured",
        ),
        (lambda: callback.progress(0), "every=0 is too small"),
        (lambda: callback.record([]), "needs a dict to write into, not a list"),  # type: ignore[arg-type]
        (lambda: callback.time_limit(-1), "seconds=-1 is too small"),
    ],
)
def test_what_makes_no_sense(make: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        make()


NONE = "  no validation set, so nothing is measured"


def bar(done: int, n_rounds: int, left: str = "") -> str:
    """The line of a terminal after so many rounds; from the second on, it says how long
    the rest takes.
    """
    full = 20 * done // n_rounds
    return f"\r{'█' * full}{'░' * (20 - full)}{left} [{done}]{NONE}\033[K"


def test_progress_every_so_many_rounds_and_the_last(
    capsys: pytest.CaptureFixture[str],
) -> None:
    train({"n_estimators": 5, "verbose": 2}, DATA)
    assert capsys.readouterr().out == f"[2]{NONE}\n[4]{NONE}\n[5]{NONE}\n"
    show = callback.progress()
    show(a_round(6, {"rmse": 0.123456789, "mae": 2.0}))
    assert (
        capsys.readouterr().out
        == "[7]  early rmse -6  late rmse 0.123457  late mae 2\n"
    )


def test_progress_on_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    train({"n_estimators": 103, "verbose": True}, DATA)
    # into a pipe: a line now and then
    assert capsys.readouterr().out == f"[50]{NONE}\n[100]{NONE}\n[103]{NONE}\n"
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    train({"n_estimators": 3, "verbose": True}, DATA)
    assert (
        capsys.readouterr().out == bar(1, 3) + bar(2, 3, " 0 s left") + bar(3, 3) + "\n"
    )
    train({"n_estimators": 3}, DATA)
    assert capsys.readouterr().out == ""


def test_progress_ends_its_line_when_stopped_early(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    train(
        {"n_estimators": 9, "verbose": True},
        DATA,
        callbacks=[lambda view: view.index == 1],
    )
    assert capsys.readouterr().out == bar(1, 9) + bar(2, 9) + "\n"


def test_record() -> None:
    into: dict[str, Any] = {}
    booster = train(
        {"n_estimators": 3},
        DATA,
        valid={"mine": DATA},
        callbacks=[callback.record(into)],
    )
    assert into == booster.history and len(into["mine"]["rmse"]) == 3


def test_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([10.0, 11.0, 12.9, 13.0])
    monkeypatch.setattr("time.monotonic", lambda: next(clock))
    limit = callback.time_limit(3)
    assert [limit(a_round(i, {})) for i in range(3)] == [False, False, True]


def test_an_early_stopping_that_watched_another_training_starts_anew() -> None:
    stop = callback.early_stopping(100)
    falling = iter([5, 4, 3, 2, 1, 6, 7, 8, 9, 10])
    rising = iter(range(18, 10, -1))
    data = Dataset(X, Y)
    kept = []
    for values, n_rounds, before in (
        (falling, 10, None),
        (rising, 8, train({"n_estimators": 10}, data)),
    ):
        params = {
            "n_estimators": n_rounds,
            "eval_metric": ("given", lambda *_, v=values: float(next(v)), False),
        }
        kept.append(
            train(
                params, data, valid=data, callbacks=[stop], init_model=before
            ).n_rounds
        )
    assert kept == [5, 18]


def test_a_training_that_runs_away_says_what_to_try() -> None:
    data = Dataset(X, Y)
    for more in ({}, {"valid": data}):
        with pytest.raises(DivergedError, match="smaller learning_rate"):
            train(
                {"learning_rate": 50.0, "n_estimators": 2000, "reg_lambda": 0.0},
                data,
                **more,
            )
