"""Loggers of experiments, Optuna's pruning, progress bars, and what notebooks show."""

import sys

import numpy as np
import pytest

import sapwood as sw
from sapwood.errors import ParameterError

rng = np.random.default_rng(0)
X = rng.normal(size=(300, 3))
y = X[:, 0] * 2 + rng.normal(0, 0.1, 300)
DATA = sw.Dataset(X[:200], y[:200])
VALID = sw.Dataset(X[200:], y[200:], reference=DATA)


def test_log_hands_on_every_so_many_rounds_and_the_last() -> None:
    seen: list[tuple[dict[str, float], int]] = []
    booster = sw.train(
        {"n_estimators": 7},
        DATA,
        valid=VALID,
        callbacks=[sw.callback.log(lambda d, s: seen.append((d, s)), every=3)],
    )
    assert [step for _, step in seen] == [3, 6, 7]
    assert seen[-1][0] == {"valid/rmse": booster.history["valid"]["rmse"][-1]}


def test_prune_ends_a_bad_trial() -> None:
    optuna = pytest.importorskip("optuna")

    class Trial:
        reported: list[tuple[float, int]] = []  # noqa: RUF012

        def report(self, value: float, step: int) -> None:
            self.reported.append((value, step))

        def should_prune(self) -> bool:
            return len(self.reported) == 4

    trial = Trial()
    with pytest.raises(optuna.TrialPruned):
        sw.train(
            {"n_estimators": 9}, DATA, valid=VALID, callbacks=[sw.callback.prune(trial)]
        )
    assert [step for _, step in trial.reported] == [0, 1, 2, 3]
    with pytest.raises(ParameterError, match="is not measured"):
        sw.train({"n_estimators": 2}, DATA, callbacks=[sw.callback.prune(Trial())])


def test_a_bar_in_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    sw.train({"n_estimators": 10, "verbose": True}, DATA, valid=VALID)
    out = capsys.readouterr().out
    assert (
        "█" * 20 in out and " s left" in out and out.count("\n") == 1 and "rmse" in out
    )


def test_what_notebooks_show() -> None:
    booster = sw.train(
        {"n_estimators": 3}, sw.Dataset(X, y, feature_names=["<b>", "n", "m"])
    )
    told = booster.explain(X[:5])
    for one in (booster, told, DATA):
        text = one._repr_html_()
        assert (
            text.startswith("<div>")
            and text.count("<tr>") == text.count("</tr>")
            and "<b>" not in text
        )
    assert "&lt;b&gt;" in booster._repr_html_()
    assert "Explanation" in booster.explain(X[:0])._repr_html_()


def test_dir_has_no_internals() -> None:
    booster = sw.train({"n_estimators": 1}, DATA)
    for one in (booster, booster.explain(X[:1])):
        assert not [
            name
            for name in dir(one)
            if name.startswith("_") and not name.endswith("__")
        ]
    assert {"predict", "explain", "report", "save"} <= set(dir(booster))
