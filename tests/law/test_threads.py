"""The law over threads: one model, byte for byte, for any number of them."""

import pytest

from law.tasks import TASKS, every_task, expected, train
from sapwood import _core


@pytest.mark.filterwarnings("ignore:sampling='goss' takes all rows")
@every_task()
def test_threads(name: str) -> None:
    assert [train(name, n_jobs).fingerprint() for n_jobs in (2, 3, 7)] == [
        expected(name)
    ] * 3


def test_there_were_threads_indeed() -> None:
    train("leafwise-squared_error-300000", 7)
    assert _core.n_workers() >= 2


@pytest.mark.parametrize(
    "change",
    [
        {"random_state": 1},
        {"precision": "wide"},
        {"max_leaves": 23},
        {"learning_rate": 0.2},
    ],
)
def test_a_fingerprint_sees_what_changes_a_model(
    change: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "leafwise-squared_error-narrow-sampled-none"
    before = train(name).fingerprint()
    monkeypatch.setitem(TASKS[name].params, "n_estimators", 3)  # type: ignore[arg-type]
    for key, value in change.items():
        monkeypatch.setitem(TASKS[name].params, key, value)  # type: ignore[arg-type]
    assert train(name).fingerprint() != before
