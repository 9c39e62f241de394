"""Metrics: by hand, against scikit-learn, laws of order and repetition, names,
parameters and callables.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics as sk

from cover import examples
from law.holders import deal, run
from sapwood import metric
from sapwood.device import host
from sapwood.errors import DataError, ObjectiveError, ParameterError

Y = np.array([0.0, 0.0, 1.0, 1.0])
P = np.array([0.1, 0.6, 0.5, 0.8])
CLASSES = np.array([0.0, 2.0, 1.0])
SHARES = np.array([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.25, 0.5, 0.25]])
EVERY = [(one.name, link) for one in metric.METRICS.values() for link in one.links]


def by_name(name: str, link: str | None = None, **fields: float) -> metric.Metric:
    (one,) = metric.resolve(name, default="rmse", link=link, fields=fields)
    return one


def rows(link: str, n: int, seed: int = 3) -> tuple[Any, Any]:
    """Labels and predictions that every metric of a link can measure, with ties."""
    rng = np.random.default_rng(seed)
    if link in metric.CLASSES:
        prediction = rng.dirichlet([1, 1, 1], n)
        return np.append([0.0, 1.0, 2.0], rng.integers(0, 3, n - 3)), prediction
    truth = np.append([0.0, 1.0], rng.integers(0, 2, n - 2))
    if link in metric.STEP:
        return truth, rng.integers(0, 2, n).astype(float)
    if link in metric.BINARY:
        return truth, rng.random(n).round(2)
    return rng.gamma(2.0, 3.0, n).round(2) + 1.0, rng.gamma(2.0, 3.0, n).round(2) + 0.5


@pytest.mark.parametrize(
    ("name", "y", "prediction", "weight", "expected"),
    [
        ("rmse", [1, 2], [1, 4], None, math.sqrt(2)),
        ("rmse", [1, 2], [1, 4], [3, 1], 1.0),
        ("rmse", [5, 5], [5, 5], None, 0.0),
        ("rmse", [0, 0], [3e300, 4e300], None, math.sqrt(12.5) * 1e300),
        ("rmse", [0, 0], [3e-300, 4e-300], None, math.sqrt(12.5) * 1e-300),
        ("mse", [1, 2], [1, 4], [3, 1], 1.0),
        ("mae", [1, 2], [0, 4], None, 1.5),
        ("mae", [1, 2], [0, 4], [1, 0], 1.0),
        # a label within -1..1 counts as 1
        ("mape", [4, -4, 0.5], [5, -2, 0], None, (1 / 4 + 2 / 4 + 0.5) / 3),
        ("r2", [1, 2, 3], [2, 2, 2], None, 0.0),
        ("r2", [1, 2, 3], [1, 2, 4], None, 0.5),
        ("rmsle", [0, math.e - 1], [0, math.e**3 - 1], None, math.sqrt(2)),
        ("rmsle", [0], [-1], None, 53 * math.log(2)),  # kept off -1
        ("pinball@0.9", [1, 2], [0, 4], None, (0.9 + 0.2) / 2),
        ("expectile@0.9", [1, 2], [0, 4], None, (0.9 + 0.4) / 2),
        ("huber@1.5", [0, 0, 0], [1, -1.5, 3], None, (0.5 + 1.125 + 1.5 * 2.25) / 3),
        ("poisson", [0, 2], [3, 1], None, 3 + 2 * math.log(2) - 1),
        ("poisson", [0, 0], [0, 0], None, 2e-100),  # kept off 0
        ("gamma", [1, 2], [2, 1], None, 0.5),
        ("tweedie", [0, 1], [4, 4], None, 2 * (2 * 2 + (2 * 2 + 2 * 0.5 - 4)) / 2),
        (
            "logloss",
            Y,
            P,
            None,
            -(math.log(0.9) + math.log(0.4) + math.log(0.5) + math.log(0.8)) / 4,
        ),
        ("logloss", [0, 1], [1, 0], None, -math.log(1e-15)),
        ("logloss", [0.25, 1], [0.5, 1], None, math.log(2) / 2),
        (
            "logloss",
            [0.25],
            [0.2],
            None,
            -(0.25 * math.log(0.2) + 0.75 * math.log(0.8)),
        ),
        (
            "multi_logloss",
            CLASSES,
            SHARES,
            None,
            -(math.log(0.5) + math.log(0.25) + math.log(0.5)) / 3,
        ),
        ("brier", [0, 1, 0.5], [0.5, 0.5, 0.5], None, 0.5 / 3),
        ("brier", CLASSES, SHARES, None, (0.375 + 0.875 + 0.375) / 3),
        ("accuracy", Y, P, None, 0.5),  # 0.5 is class 0, the first of two equals
        ("error", Y, P, [1, 1, 1, 5], 2 / 8),
        ("error@0.6", Y, P, None, 1 / 4),
        ("accuracy", CLASSES, SHARES, None, 2 / 3),
        ("error", CLASSES, SHARES, None, 1 / 3),
        ("balanced_accuracy", Y, [0, 0, 0, 1], [1, 1, 3, 1], (1 + 1 / 4) / 2),
        # classes without rows do not count
        ("balanced_accuracy", [1, 1], [0.1, 0.9], None, 0.5),
        ("f1", Y, P, None, 0.5),
        ("f1@0.4", Y, P, None, 4 / 5),
        ("f1", [0, 1], [0.1, 0.2], None, 0.0),
        ("f1", CLASSES, SHARES, None, (1 + 2 / 3 + 0) / 3),
        # nor do those without guesses too
        ("f1", [0, 1], np.eye(3)[[0, 1]], None, 1.0),
        ("precision", Y, P, None, 1 / 2),
        ("precision", Y, [0, 0, 0, 0], None, 0.0),
        ("precision", CLASSES, SHARES, None, (1 + 1 / 2 + 0) / 3),
        ("recall@0.4", Y, P, [1, 1, 1, 3], 1.0),
        ("recall", Y, P, [1, 1, 1, 3], 3 / 4),
        ("kappa", Y, [0, 1, 1, 1], None, 1 / 2),
        ("kappa", Y, [1, 1, 1, 1], None, 0.0),
        ("smape", [0, 1, 2], [0, 3, 0], None, (0 + 1 + 2) / 3),
        ("msle", [0, math.e - 1], [0, math.e**3 - 1], None, 2.0),
        ("median_absolute_error", [0, 0, 0, 0], [1, -2, 4, 8], None, 3.0),
        ("median_absolute_error", [0, 0, 0, 0], [1, -2, 4, 8], [1, 1, 3, 0], 4.0),
        ("mcc", [0, 0, 1, 1], [0, 1, 1, 1], None, 1 / math.sqrt(3)),
        ("mcc", Y, [0, 0, 0, 0], None, 0.0),
        ("auc", Y, P, None, 3 / 4),
        ("auc", Y, [0.1, 0.5, 0.5, 0.8], None, 3.5 / 4),
        ("auc", Y, P, [1, 2, 1, 1], (1 + 0 + 1 + 2) / 6),
        ("auc", Y, [0.0, 0.0, 0.0, 0.0], None, 0.5),
        ("auc", Y, [-7, -1, -3, 1e300], None, 3 / 4),  # any score has ranks
        ("average_precision", Y, P, None, (1 + 2 / 3) / 2),
        ("average_precision", Y, [1, 0.6, 0.5, 0.8], [0, 1, 1, 1], (1 + 2 / 3) / 2),
    ],
)
def test_by_hand(
    name: str, y: Any, prediction: Any, weight: Any, expected: float
) -> None:
    args = (
        np.array(y, float),
        np.array(prediction, float),
        None if weight is None else np.array(weight, float),
    )
    # a few roundings of the last bit
    assert by_name(name)(*args) == pytest.approx(expected, rel=1e-14, abs=0)


def test_nothing_wrong_is_a_plain_zero() -> None:
    assert math.copysign(1.0, by_name("logloss")(Y, Y, None)) == 1.0


def guessed(
    function: Callable[..., float], threshold: float = 0.5, **options: Any
) -> Callable[..., float]:
    """A metric of scikit-learn that wants classes."""

    def measured(y: Any, p: Any, **weight: Any) -> float:
        return function(
            y,
            p.argmax(1) if p.ndim == 2 else (p > threshold) * 1.0,
            **options,
            **weight,
        )

    return measured


def expected_squares(y: Any, p: Any, sample_weight: Any = None) -> float:
    """scikit-learn has no expectile loss; this is the one XGBoost and CatBoost
    measure.
    """
    return float(
        np.average(np.where(y > p, 0.8, 0.2) * (y - p) ** 2, weights=sample_weight)
    )


def small_errors(y: Any, p: Any, sample_weight: Any = None) -> float:
    """scikit-learn has no metric of Huber's loss; this is the one of its boosting."""
    size = np.abs(y - p)
    return float(
        np.average(
            np.where(size <= 1.5, size**2 / 2, 1.5 * (size - 0.75)),
            weights=sample_weight,
        )
    )


def shares_of_both(y: Any, p: Any, sample_weight: Any = None) -> float:
    """scikit-learn has no symmetric percentage error; this is a hundredth of
    CatBoost's.
    """
    return float(
        np.average(2 * np.abs(y - p) / (np.abs(y) + np.abs(p)), weights=sample_weight)
    )


def middle(y: Any, p: Any, sample_weight: Any = None) -> float:
    """The least error that half of the weight does not exceed; scikit-learn's weights
    change with its versions.
    """
    if sample_weight is None:
        return float(sk.median_absolute_error(y, p))
    size = np.abs(y - p)
    order = np.argsort(np.abs(y - p))
    below = np.cumsum(sample_weight[order])
    return float(size[order][np.argmax(below >= below[-1] / 2)])


def precisions(y: Any, p: Any, sample_weight: Any = None) -> float:
    return float(
        sk.average_precision_score(
            y[:, None] == [0, 1, 2], p, sample_weight=sample_weight
        )
    )


def with_options(
    function: Callable[..., float], **options: Any
) -> Callable[..., float]:
    return lambda y, p, **weight: function(y, p, **options, **weight)


ORACLES: list[tuple[str, str, Callable[..., float]]] = [
    ("rmse", "identity", sk.root_mean_squared_error),
    ("mse", "identity", sk.mean_squared_error),
    ("mae", "identity", sk.mean_absolute_error),
    # the same for labels of 1 or more
    ("mape", "identity", sk.mean_absolute_percentage_error),
    ("r2", "identity", sk.r2_score),
    ("rmsle", "expm1", sk.root_mean_squared_log_error),
    ("msle", "exp", sk.mean_squared_log_error),
    ("smape", "identity", shares_of_both),
    ("median_absolute_error", "identity", middle),
    ("pinball@0.9", "identity", with_options(sk.mean_pinball_loss, alpha=0.9)),
    ("expectile@0.8", "identity", expected_squares),
    ("huber@1.5", "identity", small_errors),
    ("poisson", "exp", sk.mean_poisson_deviance),
    ("gamma", "exp", sk.mean_gamma_deviance),
    ("tweedie@1.3", "exp", with_options(sk.mean_tweedie_deviance, power=1.3)),
    ("logloss", "sigmoid", sk.log_loss),
    ("brier", "sigmoid", sk.brier_score_loss),
    ("auc", "sigmoid", sk.roc_auc_score),
    ("average_precision", "sigmoid", sk.average_precision_score),
    ("error@0.7", "sigmoid", guessed(sk.zero_one_loss, 0.7)),
    ("multi_logloss", "softmax", sk.log_loss),
    ("brier", "softmax", sk.brier_score_loss),
    ("auc", "softmax", with_options(sk.roc_auc_score, multi_class="ovr")),
    ("average_precision", "softmax", precisions),
    ("f1", "sigmoid", guessed(sk.f1_score)),
    ("f1@0.3", "sigmoid", guessed(sk.f1_score, 0.3)),
    ("precision@0.3", "sigmoid", guessed(sk.precision_score, 0.3)),
    ("precision", "softmax", guessed(sk.precision_score, average="macro")),
    ("recall@0.3", "sigmoid", guessed(sk.recall_score, 0.3)),
    ("recall", "softmax", guessed(sk.recall_score, average="macro")),
    ("f1", "step", guessed(sk.f1_score)),
    ("f1", "one_vs_all", guessed(sk.f1_score, average="macro")),
    *(
        (name, link, guessed(function))
        for link in ("sigmoid2", "softmax", "step")
        for name, function in {
            "error": sk.zero_one_loss,
            "accuracy": sk.accuracy_score,
            "balanced_accuracy": sk.balanced_accuracy_score,
            "mcc": sk.matthews_corrcoef,
            "kappa": sk.cohen_kappa_score,
        }.items()
    ),
]


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize(
    ("name", "link", "oracle"),
    ORACLES,
    ids=[f"{name}-{link}" for name, link, _ in ORACLES],
)
def test_scikit_learn_agrees(
    name: str, link: str, oracle: Callable[..., float], weighted: bool
) -> None:
    y, prediction = rows(link, 400)
    weight = np.random.default_rng(5).gamma(1.0, 1.0, 400) if weighted else None
    # Their float sums round 400 times, 1e-16 each; a correlation or a deviance is a
    # difference of such sums.
    expected = oracle(y, prediction, sample_weight=weight)
    assert by_name(name, link)(y, prediction, weight) == pytest.approx(
        expected, rel=1e-12, abs=0
    )


def test_every_metric_has_an_oracle() -> None:
    assert {name.partition("@")[0] for name, _, _ in ORACLES} == metric.METRICS.keys()


@pytest.mark.parametrize(
    ("name", "link", "oracle"),
    [
        ("rmse", "identity", sk.root_mean_squared_error),
        ("r2", "identity", sk.r2_score),
        ("pinball@0.9", "exp", with_options(sk.mean_pinball_loss, alpha=0.9)),
        ("auc", "sigmoid", sk.roc_auc_score),
        (
            "f1@0.3",
            "sigmoid",
            lambda y, p, **weight: sk.f1_score(y, p > 0.3, average="macro", **weight),
        ),
    ],
)
def test_labels_of_several_columns_have_the_mean_of_their_metrics(
    name: str, link: str, oracle: Callable[..., float]
) -> None:
    columns = [rows(link, 200, seed) for seed in range(3)]
    y, prediction = (np.column_stack(part) for part in zip(*columns, strict=True))
    weight = np.random.default_rng(5).random(200)
    one = by_name(name, link)
    expected = oracle(y, prediction, sample_weight=weight)
    # their sums round 200 times
    assert one(y, prediction, weight) == pytest.approx(expected, rel=1e-12, abs=0)
    assert one(y[:, :1], prediction[:, 0], weight) == one(
        y[:, 0], prediction[:, 0], weight
    )


@pytest.mark.parametrize(("name", "link"), EVERY)
def test_the_order_of_rows_and_how_often_they_are_written_do_not_matter(
    name: str, link: str
) -> None:
    one = by_name(name, link)
    y, prediction = rows(
        "sigmoid"
        if name in ("auc", "average_precision") and link == "identity"
        else link,
        500,
    )
    rng = np.random.default_rng(3)
    order = rng.permutation(500)
    real = rng.random(500) + 0.1
    assert one(y, prediction, None) == one(y[order], prediction[order], None)
    assert one(y, prediction, real) == one(y[order], prediction[order], real[order])
    whole = rng.integers(0, 4, 500)
    repeated = np.repeat(np.arange(500), whole)
    assert one(y, prediction, whole.astype(float)) == one(
        y[repeated], prediction[repeated], None
    )


@pytest.mark.parametrize("name", metric.METRICS)
@given(data=st.data())
@settings(max_examples=examples(20), deadline=None)
def test_repetition_and_order_on_a_few_rows(name: str, data: st.DataObject) -> None:
    n = data.draw(st.integers(6, 12))
    y, prediction = rows(
        metric.METRICS[name].links[-1], n, data.draw(st.integers(0, 1000))
    )
    counts = np.array(
        data.draw(st.lists(st.integers(1, 2**20), min_size=n, max_size=n))
    )
    order = np.array(data.draw(st.permutations(range(n))))
    one = metric.METRICS[name]
    value = one(y, prediction, counts.astype(float))
    assert value == one(y[order], prediction[order], counts[order].astype(float))
    # every row in two parts that weigh as much
    split = np.append(np.arange(n), np.arange(n))
    part = counts // 2
    assert value == one(
        y[split], prediction[split], np.append(part, counts - part).astype(float)
    )


@pytest.mark.parametrize(("name", "link"), EVERY)
def test_the_direction_is_the_one_of_better_predictions(name: str, link: str) -> None:
    one = by_name(name, link)
    if link in metric.CLASSES:
        y = CLASSES
        good = np.eye(3)[[0, 2, 1]]
        bad = np.eye(3)[[1, 1, 0]]
    elif link in metric.VALUE and name not in ("auc", "average_precision"):
        y = Y + 1
        good = Y + 1
        bad = Y + 2
    else:
        y = Y
        good = np.array([0.0, 0.0, 1.0, 1.0])
        bad = np.array([1.0, 1.0, 0.0, 0.0])
    assert (one(y, good, None) > one(y, bad, None)) == one.higher_is_better


@pytest.mark.parametrize(
    ("name", "y", "prediction", "weight", "message"),
    [
        (
            "auc",
            [1, 1, 1],
            [0.5, 0.5, 0.5],
            None,
            "auc needs validation rows of every class; add some",
        ),
        (
            "auc",
            [1, 1, 0],
            [0.5, 0.5, 0.5],
            [1, 1, 0],
            "auc needs validation rows of every class",
        ),
        (
            "auc",
            [0, 1],
            np.full((2, 3), 1 / 3),
            None,
            "auc needs validation rows of every class",
        ),
        (
            "average_precision",
            [0, 0],
            [0.5, 0.4],
            None,
            "average_precision needs validation rows of class 1",
        ),
        (
            "f1",
            [0, 0],
            [0.1, 0.9],
            None,
            "f1 needs validation rows of class 1; add some or choose another eval_metric",
        ),
        (
            "f1",
            [[0, 0], [1, 0]],
            [[0.1, 0.9], [0.9, 0.1]],
            None,
            "f1 needs validation rows of class 1",
        ),
        (
            "mcc",
            [1, 1, 0],
            [0.1, 0.9, 0.5],
            [1, 1, 0],
            "mcc needs validation rows of two classes",
        ),
        (
            "mcc",
            [2, 2],
            np.eye(3)[:2],
            None,
            "mcc needs validation rows of two classes",
        ),
        (
            "rmse",
            [1, 2],
            [np.nan, 2],
            None,
            "rmse cannot be measured: only finite values can be summed; check",
        ),
        ("pinball@0.9", [1, 2], [np.inf, 2], None, "pinball@0.9 cannot be measured"),
        (
            "logloss",
            [0, 5],
            np.eye(2),
            None,
            "logloss cannot be measured: index 5 is out of bounds",
        ),
        (
            "r2",
            [0.1, 0.1, 0.1],
            [1, 2, 3],
            None,
            "r2 needs validation labels that differ",
        ),
        (
            "r2",
            [1, 1, 2],
            [1, 2, 3],
            [1, 1, 0],
            "r2 needs validation labels that differ",
        ),
        (
            "poisson",
            [1, -1],
            [1, 1],
            None,
            "poisson needs labels of 0 or more, and validation row 1 has -1",
        ),
        (
            "gamma",
            [0, 1],
            [1, 1],
            None,
            "gamma needs labels above 0, and validation row 0 has 0",
        ),
        (
            "tweedie",
            [0, 1],
            [1, -2],
            None,
            "tweedie needs predictions of 0 or more, and validation row 1 has -2",
        ),
        ("rmsle", [-1, 1], [1, 1], None, "rmsle needs labels above -1"),
        ("rmsle", [0, 1], [1, -1.5], None, "rmsle needs predictions of -1 or more"),
        (
            "f1",
            [0.3, 1],
            [0.5, 1],
            None,
            "predicted classes needs labels 0 or 1 .logloss takes those between., and",
        ),
        ("auc", [1, 0.3], [0.5, 1], None, "auc needs labels 0 or 1"),
        ("mae", Y, P, [0, 0, 0, 0], "positive weight"),
        ("mcc", Y, P, [0, 0, 0, 0], "positive weight"),
        ("r2", Y, P, [0, 0, 0, 0], "positive weight"),
    ],
)
def test_what_cannot_be_measured(
    name: str, y: Any, prediction: Any, weight: Any, message: str
) -> None:
    args = (
        np.array(y, float),
        np.array(prediction, float),
        None if weight is None else np.array(weight, float),
    )
    with pytest.raises(DataError, match=message):
        by_name(name)(*args)


def resolve(given: Any, link: str | None = "sigmoid") -> tuple[metric.Metric, ...]:
    return metric.resolve(given, default="logloss", link=link)


@pytest.mark.parametrize(
    ("given", "link", "names"),
    [
        (None, "sigmoid", ["logloss"]),
        ([], "sigmoid", ["logloss"]),
        (["AUC", "binary_error"], "sigmoid", ["auc", "error"]),
        (
            ["l1", "RMSE", "l2", "R2", "MAPE"],
            "identity",
            ["mae", "rmse", "mse", "r2", "mape"],
        ),
        (["mlogloss", "merror", "F1"], "softmax", ["multi_logloss", "error", "f1"]),
        (["Logloss", "MultiClass"], "one_vs_all", ["logloss", "multi_logloss"]),
        (
            ["gamma-nloglik", "poisson-nloglik", "tweedie-nloglik@1.2"],
            "exp",
            ["gamma", "poisson", "tweedie@1.2"],
        ),
        (
            ["quantile", "Quantile:alpha=0.9", "pinball@.1"],
            "identity",
            ["pinball", "pinball@0.9", "pinball@.1"],
        ),
        (
            ["Tweedie:variance_power=1.6", "Huber:delta=2"],
            "exp",
            ["tweedie@1.6", "huber@2"],
        ),
        (
            ["error@0.7", "F1:proba_border=0.3", "MCC", "BrierScore"],
            "sigmoid",
            ["error@0.7", "f1@0.3", "mcc", "brier"],
        ),
        (
            ["TotalF1:average=Macro", "BalancedAccuracy"],
            "softmax",
            ["f1", "balanced_accuracy"],
        ),
        (
            ["neg_mean_squared_error", "neg_mean_absolute_error", "r2"],
            "identity",
            ["mse", "mae", "r2"],
        ),
        (
            ["neg_log_loss", "roc_auc", "aucpr", "rmse"],
            "sigmoid2",
            ["logloss", "auc", "average_precision", "rmse"],
        ),
        (
            ["Poisson_Deviance", "tweedie_deviance", "gamma_deviance"],
            "exp",
            ["poisson", "tweedie", "gamma"],
        ),
        (
            ["neg_mean_poisson_deviance", "mean_tweedie_deviance"],
            "exp",
            ["poisson", "tweedie"],
        ),
        (["auc", "rmse", "multi_logloss"], None, ["auc", "rmse", "multi_logloss"]),
    ],
)
def test_by_name(given: Any, link: str | None, names: list[str]) -> None:
    assert [one.name for one in resolve(given, link)] == names


def test_a_peer_name_leads_to_a_metric_and_hides_none() -> None:
    known = metric.METRICS.keys() | metric.RANKS.keys()
    assert set(metric.PEERS.values()) <= known
    assert not metric.PEERS.keys() & known


@pytest.mark.parametrize("objective", host.objectives())
def test_the_own_metric_of_every_objective_suits_it(objective: str) -> None:
    entry = host.objectives()[objective]
    assert by_name(entry["metric"], entry["link"]).name == entry["metric"]


@pytest.mark.parametrize(
    ("name", "field", "value"),
    [
        ("pinball", "quantile_alpha", 0.9),
        ("expectile", "expectile_alpha", 0.8),
        ("huber", "huber_delta", 2.5),
        ("tweedie", "tweedie_power", 1.2),
    ],
)
def test_the_objective_brings_the_parameter_of_its_metric(
    name: str, field: str, value: float
) -> None:
    y, prediction = rows("exp", 50)
    own = by_name(name, "exp", **{field: value})
    assert own.name == name
    assert own(y, prediction, None) == by_name(f"{name}@{value}", "exp")(
        y, prediction, None
    )
    assert own(y, prediction, None) != by_name(name, "exp")(y, prediction, None)
    asked = by_name(f"{name}@{value}", "exp", **{field: 1.7})  # what is asked for wins
    assert asked(y, prediction, None) == own(y, prediction, None)


def test_by_value() -> None:
    def profit(y: Any, prediction: Any, weight: Any) -> float:
        return np.float32(prediction[0] - y[0])

    by_itself, with_name = resolve([profit, ("gain", profit, True)])
    assert (by_itself.name, by_itself.higher_is_better) == ("profit", False)
    assert (with_name.name, with_name.higher_is_better) == ("gain", True)
    assert type(with_name(Y, P, None)) is float and with_name(Y, P, None) == np.float32(
        0.1
    )
    (own,) = metric.resolve(None, default=profit, link="identity")
    assert own.name == "profit"


def test_a_callable_sees_labels_of_several_columns_whole() -> None:
    (one,) = resolve(lambda y, prediction, weight: y.size + prediction.size)
    assert one(np.zeros((4, 3)), np.zeros((4, 3)), None) == 24


@pytest.mark.parametrize(
    ("given", "link", "message"),
    [
        ("aucc", "sigmoid", "'aucc' is unknown; did you mean 'auc'"),
        # CatBoost's default is a mean weighted by class
        ("TotalF1", "softmax", "'TotalF1' is unknown"),
        (
            "pinball@0.9",
            "sigmoid",
            "'pinball@0.9' does not suit the objective; choose one of accuracy, auc, av",
        ),
        (
            "logloss",
            "step",
            "does not suit the objective; choose one of accuracy, balanced_accuracy, error, f1, kap",
        ),
        ("rmse", "softmax", "'rmse' does not suit the objective"),
        (
            "rmse@3",
            "identity",
            "'rmse@3' has '3', but rmse takes no parameter with this objective.",
        ),
        (
            "error@0.7",
            "softmax",
            "'error@0.7' has '0.7', but error takes no parameter with this objective.",
        ),
        ("f1@0.7", "step", "f1 takes no parameter with this objective."),
        (
            "Quantile:delta=0.1",
            "identity",
            "has 'delta=0.1', but pinball takes alpha: pinball@number.",
        ),
        (
            "pinball@1",
            "identity",
            "'pinball@1' is too large; choose a number above 0 and below 1.",
        ),
        ("huber@0", "identity", "'huber@0' is too small; choose a number above 0."),
        (
            "tweedie@2",
            "exp",
            "'tweedie@2' is too large; choose a number above 1 and below 2.",
        ),
        ("pinball@high", "identity", "'pinball@high' is not a finite number; choose"),
        ("pinball@", "identity", "'pinball@' is not a finite number; choose"),
        (
            [("mine", max, True), ("mine", min, True)],
            "sigmoid",
            "two metrics of one name",
        ),
        (("gain", metric.auc), "sigmoid", "is not a metric"),
        ([3], "sigmoid", "is not a metric"),
    ],
)
def test_errors(given: Any, link: str, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        resolve(given, link)


def test_a_callable_returns_a_number() -> None:
    (one,) = resolve(lambda y, prediction, weight: "good")
    with pytest.raises(ObjectiveError, match="returned a str, not a number"):
        one(Y, P, None)
    (one,) = resolve(("gain", lambda y, prediction, weight: np.nan, True))
    with pytest.raises(
        ObjectiveError, match="metric 'gain' returned NaN, not a number"
    ):
        one(Y, P, None)
    (one,) = resolve(lambda y, prediction, weight: [].index(0))
    # the user's own error as it is
    with pytest.raises(ValueError, match="list") as raised:
        one(Y, P, None)
    assert type(raised.value) is ValueError


@pytest.mark.parametrize(
    "name", [name for name, one in metric.METRICS.items() if "softmax" not in one.links]
)
def test_one_prediction_for_each_label(name: str) -> None:
    message = rf"{name} needs one prediction for each label; predictions are \(4, 2\), labels \(4,\); give eval_metric"
    with pytest.raises(ParameterError, match=message):
        by_name(name)(Y + 1, np.ones((4, 2)), None)
    with pytest.raises(
        ParameterError, match=r"predictions are \(4,\), labels \(4, 2\)"
    ):
        by_name(name)(np.ones((4, 2)), np.ones(4), None)
    # as a link of a user's may give them
    column = by_name(name)(Y + 1, (P + 1)[:, None], None)
    assert column == by_name(name)(Y + 1, P + 1, None)


def test_a_metric_of_other_arguments_is_refused_at_once() -> None:
    with pytest.raises(
        ParameterError,
        match="takes 'preds' first, a prediction by its name, and then 'rest'",
    ):
        metric.resolve(lambda preds, rest: 0.0, default="rmse", link="identity")
    with pytest.raises(
        ParameterError,
        match=r"must take \(y, prediction, weight\), or \(y, prediction\)",
    ):
        metric.resolve(lambda y: 0.0, default="rmse", link="identity")
    for name, why in {"PFound": "use ndcg", "HingeLoss": "it needs raw scores"}.items():
        with pytest.raises(ParameterError, match=why):
            resolve(name)


@pytest.mark.parametrize(("name", "link"), EVERY)
def test_rows_dealt_to_several_holders_are_measured_as_those_of_one(
    name: str, link: str
) -> None:
    y, prediction = rows(
        "sigmoid"
        if name in ("auc", "average_precision") and link == "identity"
        else link,
        60,
    )
    # whole numbers for the first holders only
    mixed = np.append(np.arange(40.0) % 4, np.linspace(0.1, 3, 20))
    one = by_name(name, link)
    for weight in (None, np.arange(60.0) % 3, mixed):
        whole = one(y, prediction, weight)
        # the last holds no rows
        for parts in (deal(60, 2), [*deal(60, 3), slice(60, 60)]):
            own = [
                (y[part], prediction[part], None if weight is None else weight[part])
                for part in parts
            ]
            found = run(
                len(parts), lambda holder, own=own: one(*own[holder.rank], holder)
            )  # type: ignore[misc]
            assert found == [whole] * len(parts)


def test_several_outputs_and_levels_are_dealt_too() -> None:
    y = np.random.default_rng(0).normal(size=(20, 2))
    parts = deal(20, 3)
    for one, label in (
        (by_name("rmse"), y),
        (by_name("pinball", quantile_alpha=[0.1, 0.9]), y[:, 0]),
    ):  # type: ignore[arg-type]
        whole = one(label, y[::-1], None)
        found = run(
            3,
            lambda at, one=one, label=label: one(
                label[parts[at.rank]], y[::-1][parts[at.rank]], None, at
            ),
        )  # type: ignore[misc]
        assert found == [whole] * 3


def test_a_function_does_not_see_the_rows_of_other_holders() -> None:
    (own,) = metric.resolve(
        lambda y, prediction, weight: 0.0, default="rmse", link=None
    )
    with pytest.raises(
        ParameterError,
        match="is a function, which cannot see the rows of other holders; choose one",
    ):
        run(2, lambda holder: own(Y, P, None, holder))
