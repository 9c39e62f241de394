"""The page has every section, says what the model says, and loads nothing."""

import re
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

import sapwood as sw
from sapwood.errors import DataError
from sapwood.report import svg
from sapwood.report.scores import scores

SECTIONS = (
    "summary",
    "scores",
    "data",
    "learning",
    "predictions",
    "segments",
    "importance",
    "rows",
    "trees",
    "model",
)


@pytest.fixture(scope="module")
def case() -> SimpleNamespace:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "size": rng.uniform(20, 120, 600),
            "city": rng.choice(["Bern", "<b>Lyon</b>"], 600),
        }
    )
    X["floor"] = np.where(rng.random(600) < 0.2, np.nan, rng.integers(0, 6, 600))
    X["same"], X["id"] = 1.0, [f"row {k}" for k in range(600)]
    y = (
        X["size"] * 10
        + 300 * (X["city"] == "Bern")
        + rng.normal(0, 20 + 80 * (X["floor"] == 3), 600)
    )
    X["leak"] = y * 2
    c = np.where(y > 800, "dear", "cheap")
    plain = X[["size", "city", "floor"]]
    binary = sw.SapwoodClassifier(n_estimators=20).fit(plain[:400], c[:400])
    values = sw.SapwoodRegressor(n_estimators=20).fit(X[:400], y[:400])
    return SimpleNamespace(X=X, plain=plain, y=y, c=c, binary=binary, values=values)


class _Tags(HTMLParser):
    """Ids, and all that a page could load; raises nothing, so the balance of tags is
    counted.
    """

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.loads: list[str] = []
        self.opened: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.ids += [given["id"]] if given.get("id") else []
        self.loads += [
            str(given[name]) for name in ("src", "href", "data") if name in given
        ]
        if tag not in (
            "meta",
            "link",
            "rect",
            "line",
            "circle",
            "polyline",
            "polygon",
            "path",
            "br",
        ):
            self.opened.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in ("circle", "rect", "line", "polyline", "polygon", "path"):
            assert self.opened.pop() == tag


@pytest.mark.parametrize(
    ("low", "high"),
    [(-1.7e308, 1.7e308), (0.0, 5e-324), (1e15, 1e15 + 0.25), (-3.0, 4.0), (0, 1)],
)
def test_ticks_are_few_and_lie_between_the_ends(low: float, high: float) -> None:
    values = svg.ticks(low, high)
    assert 1 <= len(values) <= 7
    assert values == sorted(values)
    assert all(np.isfinite(values))


def test_a_page_about_two_classes(case: SimpleNamespace, tmp_path: Path) -> None:
    path = tmp_path / "r.html"
    text = case.binary.report(
        case.plain[400:], case.c[400:], path, title="Rents & more"
    )
    assert path.read_text() == text and list(tmp_path.iterdir()) == [path]
    page = _Tags(text)
    assert not page.opened and set(SECTIONS) <= set(page.ids)
    assert all(one.startswith(("#", "data:,")) for one in page.loads)
    assert "://" not in text.replace("http://www.w3.org/2000/svg", "")
    assert (
        "Rents &amp; more" in text and "<b>Lyon" not in text and "&lt;b&gt;Lyon" in text
    )
    assert case.binary.booster_.fingerprint() in text
    found = re.search(
        r"auc <small>higher is better</small></td><td><strong>([\d.]+)", text
    )
    p = case.binary.predict_proba(case.plain[400:])[:, 1]
    assert found and float(found[1]) == pytest.approx(
        roc_auc_score(case.c[400:], p), abs=1e-4
    )
    assert "{{" not in text


def test_a_page_about_numbers_warns(case: SimpleNamespace) -> None:
    train = (case.X[:400], case.y[:400])
    shifted = case.X[400:].assign(size=case.X["size"][400:] + 60)
    text = case.values.booster_.report(shifted, case.y[400:], train=train)
    assert "leak alone explains" in text
    assert "same has the same value in all rows" in text
    assert "id has categories that training has not seen" in text
    assert "size differs between training and these rows" in text
    assert "training rows" in text
    again = case.values.booster_.report(case.X[:200], case.y[:200], train=train)
    assert "also occur in the training rows" in again


def test_segments_find_where_the_model_is_wrong(case: SimpleNamespace) -> None:
    model = sw.SapwoodRegressor(n_estimators=60, max_depth=3).fit(case.plain, case.y)
    text = model.report(case.plain, case.y)
    part = text.partition('id="segments"')[2].partition("</section>")[0]
    first = re.findall(r"<tr><td>(.*?)</td>", part)[0]
    assert first.startswith("floor: 2 to ")  # where the noise is larger


def test_several_classes_and_no_classes_attribute() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 3))
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    model = sw.SapwoodClassifier(n_estimators=5).fit(X, y)
    assert "confusion matrix" in model.report(X, y)
    bare = sw.train(
        {"objective": "logistic", "n_estimators": 5},
        sw.Dataset(X, (y > 0).astype(float)),
    )
    assert "predicted probability of 1" in bare.report(X, (y > 0).astype(float))
    two = sw.SapwoodRegressor(n_estimators=4).fit(X, X[:, :2])
    assert "2 outputs" in two.report(X, X[:, :2])


def test_text_without_utf8(tmp_path: Path) -> None:
    """Half of a pair of surrogates is a valid str: the page and the C source are still
    written.
    """
    table = {"c": ["a", "b", "\ud800"] * 10}
    y = np.tile([1.0, 2.0, 3.0], 10)
    booster = sw.train({"n_estimators": 4, "min_samples_leaf": 1}, sw.Dataset(table, y))
    booster.report(table, y, tmp_path / "r.html")
    booster.export(tmp_path / "m.c")
    assert "\\ud800" in (tmp_path / "r.html").read_text()
    assert "\\355\\240\\200" in (tmp_path / "m.c").read_text()


def test_too_few_rows(case: SimpleNamespace) -> None:
    with pytest.raises(DataError, match="10 rows or more"):
        case.binary.report(case.plain[:5], case.c[:5])


def test_intervals_hold_as_often_as_they_say() -> None:
    """Of 200 draws of 400 rows, 95 % have the score of all rows in their interval,
    within what chance allows.
    """
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40_000, 2))
    y = (X[:, 0] + rng.normal(size=40_000) > 0).astype(float)
    booster = sw.train(
        {"objective": "logistic", "n_estimators": 10}, sw.Dataset(X[:2000], y[:2000])
    )
    p = booster.predict(X)
    names = ("logloss", "auc", "brier", "accuracy")
    truth = {one.name: one.value for one in scores(booster, y, p, names)}
    hits = dict.fromkeys(names, 0)
    for _ in range(200):
        rows = rng.integers(0, len(y), 400)
        for one in scores(booster, y[rows], p[rows], names):
            hits[one.name] += one.low <= truth[one.name] <= one.high
    assert all(180 <= n <= 199 for n in hits.values()), hits


def test_a_report_of_many_columns_lists_those_that_matter_most() -> None:
    X = np.random.default_rng(0).normal(size=(60, 400))
    y = X[:, 399]
    X[:, :120] = 1.0
    page = sw.SapwoodRegressor(n_estimators=3).fit(X, y).report(X, y)
    rows = re.search(r'<section id="data">.*?</section>', page, re.S)
    assert rows is not None
    assert "Of 400 columns these are the 300 that matter most." in rows[0]
    assert rows[0].count("<svg") == 301  # with the target
    assert "f399" in rows[0]
    assert "There are 20 more warnings of this kind." in page
