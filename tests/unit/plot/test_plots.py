"""Every plot draws on the Axes it is given, and draws what the model says."""

import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import sapwood as sw
from sapwood import plot
from sapwood.errors import DataError, ParameterError

plt = pytest.importorskip("matplotlib.pyplot")

CASES: dict[str, Callable[[SimpleNamespace, Any], Any]] = {
    "learning_curve": lambda k, ax: plot.learning_curve(k.classifier, "auc", ax=ax),
    "learning_curve of a dict": lambda k, ax: plot.learning_curve(
        {"a": {"rmse": [3, 1, 2]}}, ax=ax
    ),
    "importance": lambda k, ax: plot.importance(k.classifier, ax=ax),
    "importance permutation": lambda k, ax: plot.importance(
        k.regressor, "permutation", k.X, k.y, ax=ax
    ),
    "importance shap": lambda k, ax: plot.importance(
        k.regressor, "shap", k.X, percent=True, max_columns=2, ax=ax
    ),
    "interactions": lambda k, ax: plot.interactions(
        k.regressor.booster_.explain(k.X[:30], interactions=True), ax=ax
    ),
    "tree": lambda k, ax: plot.tree(k.classifier, 2, ax=ax),
    "tree cut": lambda k, ax: plot.tree(k.classifier.booster_, max_depth=1, ax=ax),
    "beeswarm": lambda k, ax: plot.beeswarm(k.regressor.booster_.explain(k.X), ax=ax),
    "beeswarm of a class": lambda k, ax: plot.beeswarm(
        k.three.booster_.explain(k.X[["size", "floor"]]), output="Oslo", ax=ax
    ),
    "waterfall": lambda k, ax: plot.waterfall(
        k.regressor.booster_.explain(k.X[:3]), 2, max_columns=2, ax=ax
    ),
    "dependence": lambda k, ax: plot.dependence(
        k.regressor.booster_.explain(k.X), "floor", "size", ax=ax
    ),
    "dependence on categories": lambda k, ax: plot.dependence(
        k.regressor.booster_.explain(k.X), "city", ax=ax
    ),
    "partial_dependence": lambda k, ax: plot.partial_dependence(
        k.classifier, k.X, "size", ax=ax
    ),
    "partial_dependence on categories": lambda k, ax: plot.partial_dependence(
        k.regressor, k.X, "city", ax=ax
    ),
    "partial_dependence of two": lambda k, ax: plot.partial_dependence(
        k.regressor, k.X, ["size", "city"], ax=ax
    ),
    "category_effects": lambda k, ax: plot.category_effects(
        k.regressor, k.X, "city", y=k.y, ax=ax
    ),
    "calibration": lambda k, ax: plot.calibration(k.classifier, k.X, k.c, ax=ax),
    "roc": lambda k, ax: plot.roc(k.classifier, k.X, k.c, ax=ax),
    "roc of a class": lambda k, ax: plot.roc(
        k.three, k.X[["size", "floor"]], k.X["city"], output="Lyon", ax=ax
    ),
    "precision_recall": lambda k, ax: plot.precision_recall(
        k.classifier, k.X, k.c, ax=ax
    ),
    "confusion_matrix": lambda k, ax: plot.confusion_matrix(
        k.three, k.X[["size", "floor"]], k.X["city"], ax=ax
    ),
    "residuals": lambda k, ax: plot.residuals(k.regressor, k.X, k.y, ax=ax),
    "predicted_actual": lambda k, ax: plot.predicted_actual(
        k.regressor, k.X, k.y, ax=ax
    ),
    "plot_importance": lambda k, ax: sw.plot_importance(
        k.classifier, ax, max_num_features=2, xlim=(0, 9), height=0.3
    ),
    "plot_metric": lambda k, ax: sw.plot_metric(k.classifier, ax=ax),
    "plot_tree": lambda k, ax: sw.plot_tree(k.classifier, ax=ax, tree_index=1),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("error")
def test_draws_on_the_axes_it_is_given(case: SimpleNamespace, name: str) -> None:
    figure, ax = plt.subplots()
    assert CASES[name](case, ax) is ax
    assert ax.get_children() and ax.get_title(loc="left") + ax.get_title()
    figure.canvas.draw()


def test_every_plot_is_tested() -> None:
    assert {name.split()[0] for name in CASES} == set(plot.__all__)


def test_a_new_figure_by_default(case: SimpleNamespace) -> None:
    assert plot.roc(case.classifier, case.X, case.c).figure.get_axes()


def test_bars_are_the_importances(case: SimpleNamespace) -> None:
    ax = plot.importance(case.regressor, "total_gain")
    widths = [bar.get_width() for bar in ax.patches]
    found = case.regressor.booster_.importance("total_gain")
    assert widths == sorted(found[found > 0], reverse=True)
    assert ax.get_yticklabels()[0].get_text() == "size"


def test_lines_are_the_history(case: SimpleNamespace) -> None:
    ax = plot.learning_curve(case.classifier, "logloss")
    assert ax.lines[0].get_ydata().tolist() == list(
        case.classifier.evals_result_["valid_0"]["logloss"]
    )
    with pytest.raises(ParameterError, match="several metrics"):
        plot.learning_curve(case.classifier)
    with pytest.raises(ParameterError, match="no metrics by round"):
        plot.learning_curve(sw.load(case.classifier.booster_.to_bytes()))


def test_a_waterfall_ends_at_the_score(case: SimpleNamespace) -> None:
    booster = case.regressor.booster_
    ax = plot.waterfall(booster.explain(case.X[:5]), 4)
    score = booster.predict(case.X[4:5], raw=True)[0]
    top = ax.patches[-1]  # the largest effect is drawn last
    assert top.get_x() + top.get_width() == pytest.approx(score)


def test_a_tree_has_shares_that_add_up_and_missing_directions(
    case: SimpleNamespace,
) -> None:
    from sapwood.plot.tree import nodes

    booster = case.regressor.booster_
    root = nodes(booster, 0, 5)
    assert root.share == 1.0 and sum(
        child.share for child in root.children
    ) == pytest.approx(1)
    assert root.missing_left == bool(booster.trees.missing_left[0] & 1)
    texts = [text.get_text() for text in plot.tree(case.regressor).texts]
    assert any("missing" in text for text in texts) and any(
        "100 %" in text for text in texts
    )


def test_linear_leaves_have_slopes(case: SimpleNamespace) -> None:
    booster = sw.train(
        {"n_estimators": 3, "max_depth": 2},
        sw.Dataset(case.X, case.y, linear_leaves=True),
    )
    texts = " ".join(text.get_text() for text in plot.tree(booster, 2).texts)
    assert "· size" in texts


def test_confusion_counts_every_row(case: SimpleNamespace) -> None:
    ax = plot.confusion_matrix(case.classifier, case.X, case.c)
    assert sum(int(text.get_text()) for text in ax.texts) == 400
    right = (case.classifier.predict(case.X) == case.c).mean()
    assert f"{right:.1%}" in ax.get_title(loc="left")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda k: plot.roc(k.three, k.X[["size", "floor"]], k.X["city"]),
            "choose one: output=",
        ),
        (lambda k: plot.roc(k.regressor, k.X, k.y), "gives no probabilities"),
        (lambda k: plot.residuals(k.classifier, k.X, k.c), "predicts classes"),
        (lambda k: plot.tree(k.classifier, 99), "tree 99 does not exist"),
        (lambda k: plot.category_effects(k.regressor, k.X, "size"), "has numbers"),
        (lambda k: plot.importance(k.X), "neither a Booster nor"),
        (
            lambda k: plot.waterfall(k.regressor.booster_.explain(k.X[:1]), 5),
            "row 5 does not exist",
        ),
        (
            lambda k: plot.dependence(k.regressor.booster_.explain(k.X[:9]), "sise"),
            "did you mean 'size'",
        ),
        (
            lambda k: plot.beeswarm(
                k.regressor.booster_.explain(k.X[:9], interactions=True)
            ),
            "without interactions",
        ),
        (
            lambda k: plot.interactions(k.regressor.booster_.explain(k.X[:9])),
            "interactions=True",
        ),
        (
            lambda k: sw.plot_importance(k.regressor, colour="red"),
            "colour: no such argument",
        ),
    ],
)
def test_what_is_wrong_is_said(
    case: SimpleNamespace, call: Callable[[SimpleNamespace], Any], message: str
) -> None:
    with pytest.raises((ParameterError, DataError), match=message):
        call(case)


def test_without_matplotlib_a_sentence(
    case: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ParameterError, match=r"pip install 'sapwood\[plot\]'"):
        sw.plot_importance(case.regressor)


def test_an_explanation_says_its_categories(case: SimpleNamespace) -> None:
    told = case.regressor.booster_.explain(case.X[:2])
    assert told.shown(0, 1) == case.X["city"][0] and np.isfinite(
        float(told.shown(0, 0))
    )
