"""The factor on scores of classes: large where no row speaks against it, small beside
mistakes, none beside noise.
"""

from importlib import import_module

import numpy as np
import pandas as pd
import pytest

import sapwood as sw
from sapwood.boost.auto import blend, candidates, confidence, fit
from sapwood.boost.auto.contender import Contender

RNG = np.random.default_rng(7)
LABEL = RNG.integers(0, 2, 1000).astype(float)


class _Scored:
    """A contender of scores that are given, for two classes."""

    of_classes = True
    n_held = 1000

    def __init__(self, margin, label=LABEL, flaws=0):
        self.label = label
        self.flaws = flaws
        self.scores = np.where(label > 0, margin, -margin)[None]

    def loss_of(self, scores, label=None):
        sign = np.where((self.label if label is None else label) > 0, 1.0, -1.0)
        return float(np.logaddexp(0, -sign * scores[0]).mean())

    def n_mistaken(self, scores):
        return confidence.mistaken(scores, self.label).sum()


def rule(n=700, noise=0.0, n_classes=2, seed=0):
    """Words whose label is the sum of two columns, modulo the classes; some labels are
    another class.
    """
    rng = np.random.default_rng(seed)
    words = rng.integers(0, 3, (n, 5))
    label = (words[:, 0] + words[:, 1]) % n_classes
    label = np.where(rng.random(n) < noise, (label + 1) % n_classes, label)
    table = pd.DataFrame({f"c{at}": pd.Categorical(words[:, at]) for at in range(5)})
    return table, label


def log_loss(model, table, label):
    return float(
        -np.log(model.predict_proba(table)[np.arange(len(label)), label]).mean()
    )


def test_without_any_mistake_the_loss_goes_to_nothing():
    one = _Scored(np.full(1000, 3.0))
    found = confidence.factor([(one, 8)])
    assert (
        one.loss_of(found * one.scores)
        <= confidence.CERTAIN
        < one.loss_of(found / confidence.STEP * one.scores)
    )


@pytest.mark.parametrize("flaws", [1, None])
def test_a_mistaken_training_row_bounds_the_factor(flaws):
    """Half a wrong row among a thousand: probabilities of a mistake near 1 / 2000, by
    less than a step.
    """
    found = confidence.factor([(_Scored(np.full(1000, 3.0), flaws=flaws), 8)])
    best = np.log(2000) / 3.0
    assert best / confidence.STEP < found < best * confidence.STEP


def test_wrong_labels_bound_the_factor():
    """Ten of a thousand are wrong, and the scores say so: the factor stays 1. At a
    third of them it is near 3.
    """
    margin = np.full(1000, np.log(99.0))
    margin[:10] *= -1
    assert confidence.factor([(_Scored(margin), 8)]) == 1
    assert (
        3.0 / confidence.STEP
        < confidence.factor([(_Scored(margin / 3), 8)])
        < 3.0 * confidence.STEP
    )


def test_what_saves_little_is_left_out(monkeypatch):
    """A tenth of the labels is wrong: a factor of 1.2 is best, and saves less than 1
    %.
    """
    margin = np.full(1000, np.log(9.0) / 1.2)
    margin[:100] *= -1
    assert confidence.factor([(_Scored(margin), 8)]) == 1
    monkeypatch.setattr(confidence, "LEAST_GAIN", 0.0)
    assert confidence.factor([(_Scored(margin), 8)]) > 1


def test_other_tasks_have_no_factor():
    one = _Scored(np.full(1000, 3.0))
    one.of_classes = False
    assert confidence.factor([(one, 8)]) == 1


def test_rows_without_the_highest_score_are_mistaken():
    scores = np.array(
        [[1.0, 0.0, 2.0, 5.0], [0.0, 1.0, 2.0, 6.0], [-1.0, 0.5, 0.0, 7.0]]
    )
    assert confidence.mistaken(scores, np.array([0.0, 1.0, 0.0, 0.0])).tolist() == [
        False,
        False,
        True,
        True,
    ]
    assert confidence.mistaken(
        np.array([[1.0, -1.0, 0.0]]), np.array([1.0, 1.0, 0.0])
    ).tolist() == [False, True, True]


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("quality", ["fast", "balanced"])
def test_a_rule_is_believed(quality, n_classes):
    table, label = rule(1000, n_classes=n_classes)
    model = sw.SapwoodClassifier(quality=quality, learning_rate=0.3, n_jobs=1).fit(
        table[:800], label[:800]
    )
    assert model.chosen_.factor > 2
    assert f"Its scores are times {model.chosen_.factor:.3g}" in str(model.chosen_)
    assert log_loss(model, table[800:], label[800:]) < 1e-7


@pytest.mark.parametrize("quality", ["fast", "balanced"])
def test_noise_is_not_believed(quality):
    table, label = rule(1000, noise=0.03)
    model = sw.SapwoodClassifier(quality=quality, learning_rate=0.3, n_jobs=1).fit(
        table, label
    )
    assert model.chosen_.factor == 1
    assert "Its scores are times" not in str(model.chosen_)


def test_training_ends_where_nothing_is_left_to_learn(monkeypatch):
    """The first candidate is certain after few rounds, the next has twice as many;
    without a factor none is certain.
    """
    table, label = rule(1000)
    given = {
        "objective": "logistic",
        "learning_rate": 0.3,
        "n_estimators": 300,
        "n_jobs": 1,
    }
    data = sw.Dataset(table, label, n_jobs=1)
    first, witness = fit(given, data, "balanced").chosen.tried
    monkeypatch.setattr(confidence, "MOST", 1.0)
    other, _ = fit(given, data, "balanced").chosen.tried
    assert first.name == other.name
    assert 2 * first.rounds < other.rounds
    assert witness.rounds <= 2 * first.rounds


def test_what_one_candidate_has_seen_puts_all_in_doubt(monkeypatch):
    """Where leaf-wise trees see wrong labels, symmetric trees that were certain are
    trained to their end.
    """
    table, label = rule(1000)
    given = {
        "objective": "logistic",
        "learning_rate": 0.3,
        "n_estimators": 300,
        "n_jobs": 1,
    }
    data = sw.Dataset(table, label, n_jobs=1)
    believed = fit(given, data, "balanced").chosen
    seen = np.array([3, 5])
    monkeypatch.setattr(
        Contender,
        "_mistaken_rows",
        lambda one: seen[: 2 * ("leaf-wise" in one.candidate.name)],
    )
    # they are not tried
    monkeypatch.setattr(import_module("sapwood.boost.auto.fit"), "MOST_SUSPECTS", 0.0)
    doubted = fit(given, data, "balanced").chosen
    assert 2 * believed.tried[0].rounds < doubted.tried[0].rounds
    assert doubted.factor < 0.5 * believed.factor


def test_a_wrong_label_among_training_rows_is_seen():
    """No held-out row is mistaken, one training row has a wrong label: it counts when
    the rule was learnt.
    """
    table, label = rule(1000)
    held = np.arange(1000) >= 800
    flaws = []
    for wrong in ([], [17]):
        mixed = label.astype(float)
        mixed[wrong] = 1 - mixed[wrong]
        data = sw.Dataset(table, mixed, n_jobs=1)
        params = {
            "objective": "logistic",
            "learning_rate": 0.3,
            "n_estimators": 60,
            "early_stopping_rounds": 60,
        }
        one = Contender(candidates.Candidate("any", params), {}, data, [held])
        one.advance()
        assert one.n_mistaken(one.scores) == 0
        flaws.append(one.flaws)
    assert flaws == [0, 1]


@pytest.mark.parametrize("n_suspects", [1, 4])
def test_rare_rows_are_told_from_wrong_labels(n_suspects):
    """Mistaken training rows are held out by halves: they are believed if they get
    their class all the same.
    """
    table, label = rule(3000)
    given = {
        "objective": "logistic",
        "learning_rate": 0.3,
        "n_estimators": 60,
        "n_jobs": 1,
    }
    verdicts = []
    for wrong in (False, True):
        suspects = np.array([26, 27, 28, 29])[:n_suspects]  # not held out
        labels = label.astype(float)
        labels[suspects] = 1 - label[suspects] if wrong else label[suspects]
        one = import_module("sapwood.boost.auto.fit")._Fit(
            given, sw.Dataset(table, labels, n_jobs=1), "fast", None
        )
        assert not one.folds[0][suspects].any()
        one.candidates()
        for each in one.finished:
            assert each.n_mistaken(each.scores) == 0
            each.suspects = suspects
        verdicts.append(one.cleared())
    assert verdicts == [True, False]


def test_same_bytes_on_any_number_of_threads_with_a_factor():
    table, label = rule(600, n_classes=3)
    models = [
        sw.SapwoodClassifier(learning_rate=0.3, n_jobs=n_jobs).fit(table, label)
        for n_jobs in (1, 2, 3, 7)
    ]
    assert models[0].chosen_.factor > 1
    assert len({model.booster_.to_bytes() for model in models}) == 1


def test_a_scaled_model_is_explained_and_saved(tmp_path):
    table, label = rule(600)
    model = sw.SapwoodClassifier(learning_rate=0.3, n_jobs=1).fit(table, label).booster_
    raw = model.predict(table[:50], raw=True)
    told = model.explain(table[:50])
    np.testing.assert_allclose(
        told.values.sum(axis=1) + told.base_values, raw, rtol=1e-12, atol=1e-9
    )
    model.save(tmp_path / "model.sapwood")
    np.testing.assert_array_equal(
        sw.load(tmp_path / "model.sapwood").predict(table), model.predict(table)
    )


@pytest.mark.parametrize("linear", [False, True])
def test_scores_are_scaled_with_base_and_slopes(linear):
    numbers = RNG.normal(size=(500, 3))
    label = (numbers[:, 0] + numbers[:, 1] > 0.2).astype(float)
    data = sw.Dataset(numbers, label, linear_leaves=linear, n_jobs=1)
    model = sw.train(
        {
            "objective": "logistic",
            "n_estimators": 10,
            "linear_leaves": linear,
            "n_jobs": 1,
        },
        data,
    )
    twice = blend.scaled(model, 2.0)  # exact: a power of two
    np.testing.assert_array_equal(
        twice.predict(numbers, raw=True), 2.0 * model.predict(numbers, raw=True)
    )
    assert blend.scaled(model, 1.0) is model
