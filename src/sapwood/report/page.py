"""The page: sections of HTML around figures and tables, with the style and the few
lines of script they need.

In: a model, rows, labels. Out: one HTML document that loads nothing.
"""

import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np

from sapwood import __version__
from sapwood.data.html import escape
from sapwood.errors import DataError, ParameterError, SapwoodError
from sapwood.metric import curves
from sapwood.model.booster import Booster
from sapwood.model.explain.shapley import labels_of, outputs_of
from sapwood.report import facts as looking
from sapwood.report import findings, svg
from sapwood.report import trees as drawing
from sapwood.report.scores import Score, scores
from sapwood.report.spread import histogram, quantiles
from sapwood.report.svg import Chart, number, short

MAX_COLUMNS = 15
MAX_LISTED = 300  # columns of the table of columns
MAX_WARNINGS = 100  # that are shown
N_TREES = 12
NAMES = {
    "permutation": "Rise of the loss if the column is permuted",
    "shap": "Mean size of the column's effects (Shapley values)",
    "total_gain": "Share in the gain of all splits, % (training rows)",
}


@dataclass
class Subject:
    """What the page is about."""

    booster: Booster
    rows: Any  # as the model reads them
    y: Any
    label: Any  # as numbers
    prediction: Any
    title: str
    train: Any = None  # rows of training, as the model reads them
    train_label: Any = None


# a figure that is not finite is shown as a dash
@np.errstate(over="ignore", invalid="ignore")
def make(
    booster: Booster,
    X: Any,
    y: Any,
    *,
    train: tuple[Any, Any] | None = None,
    title: str = "Model report",
) -> str:
    """The document; `sapwood.report.report` has the arguments."""
    start = time.monotonic()
    if booster.link == "custom" and booster.transform is None:
        raise ParameterError(
            "the model has a custom link; give it back first: booster.with_link(f)."
        )
    rows = booster._read(X).dense()
    if rows.n_rows < 10:
        raise DataError(f"a report needs 10 rows or more; there are {rows.n_rows}.")
    label = labels_of(booster, y, rows.n_rows)
    label = label[:, 0] if label.ndim == 2 and label.shape[1] == 1 else label
    it = Subject(booster, rows, np.asarray(y), label, booster.predict(rows), title)
    if train is not None:
        it.train = booster._read(train[0]).dense()
        it.train_label = labels_of(booster, train[1], it.train.n_rows)
    found = looking.facts(booster, rows, label, it.train)
    measured = scores(booster, it.y, it.prediction)
    by_kind = findings.importances(booster, rows, it.y)
    first = by_kind.get("permutation", by_kind["total_gain"])
    loss, loss_name = findings.losses(booster, label, it.prediction)
    sections = [
        ("summary", "Summary", _summary(it, found, measured, first)),
        ("scores", "Scores", _scores(measured, it)),
        ("data", "The rows", _data(found, it, first)),
        ("learning", "Loss as rounds are added", _learning(it)),
        ("predictions", "Predictions and truth", _predictions(it)),
        (
            "segments",
            "Errors by segment",
            _segments(it, loss, loss_name, np.argsort(-first, kind="stable")),
        ),
        ("importance", "Which columns matter", _importance(it, by_kind)),
        ("rows", "Single rows explained", _rows(it, loss)),
        ("trees", "Trees", drawing.browser(booster, N_TREES)),
        ("model", "The model, and how to get it again", _model(it)),
    ]
    seconds = time.monotonic() - start
    menu = "".join(
        f'<a href="#{name}">{escape(text)}</a>' for name, text, _ in sections
    )
    body = "".join(
        f'<section id="{name}"><h2>{escape(text)}</h2>{content}</section>'
        for name, text, content in sections
    )
    parts = {
        "TITLE": escape(str(title)),
        "STYLE": _asset("report.css"),
        "SCRIPT": _asset("report.js"),
        "MENU": menu,
        "BODY": body,
        "FOOT": f"Made by Sapwood {escape(__version__)} in {seconds:.1f} s from {rows.n_rows:,} rows. "
        "The page loads nothing from anywhere.",
    }
    return _filled(_asset("report.html"), parts)


def _filled(template: str, parts: Mapping[str, str]) -> str:
    """The template with a part in the place of each `{{NAME}}`; what looks like a place
    inside a part remains.
    """
    return re.sub(r"\{\{([A-Z]+)\}\}", lambda place: parts[place[1]], template)


def _asset(name: str) -> str:
    return files("sapwood.report").joinpath(name).read_text(encoding="utf-8")


def table(header: list[str], rows: list[list[str]], kind: str = "") -> str:
    """A table of cells that are HTML; the first column is text, the others are
    numbers.
    """
    head = "".join(f"<th>{one}</th>" for one in header)
    body = "".join(
        "<tr>" + "".join(f"<td>{one}</td>" for one in row) + "</tr>" for row in rows
    )
    return f'<div class="scroll"><table class="{kind}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'  # noqa: E501


def _figure(drawing_: str, caption: str) -> str:
    return f"<figure>{drawing_}<figcaption>{caption}</figcaption></figure>"


# ---- Sections ------------------------------------------------------------------------


def _summary(
    it: Subject, found: looking.Facts, measured: list[Score], first: Any
) -> str:
    booster = it.booster
    what = (
        "classes " + ", ".join(outputs_of(booster)[:6])
        if booster.classes is not None
        else "numbers"
    )
    if booster.classes is not None and booster.n_outputs == 1:
        what = "the classes " + " and ".join(map(str, booster.classes.tolist()))
    top = [
        booster.feature_names[j]
        for j in np.argsort(-first, kind="stable")[:3]
        if first[j] > 0
    ]
    lines = [
        f"A model of {booster.n_rounds:,} rounds predicts {escape(what)} from {booster.n_columns} columns. "
        f"This page judges it on {found.n_rows:,} rows."
    ]
    if measured:
        one = measured[0]
        better = one.baseline is not None and (
            (one.value > one.baseline) == one.higher_is_better
        )
        compared = ""
        if one.baseline is not None:
            word = "better" if better else "<strong>no better</strong>"
            compared = f", {word} than a constant guess ({number(one.baseline)})"
        lines.append(
            f"Its {escape(one.name)} is <strong>{number(one.value)}</strong> "
            f"(95 % interval {number(one.low)} to {number(one.high)}){compared}."
        )
    if top:
        lines.append(
            "What matters most: "
            + ", ".join(f"<strong>{short(name)}</strong>" for name in top)
            + "."
        )
    text = "".join(f"<p>{line}</p>" for line in lines)
    cards = "".join(
        f'<div class="card"><span class="big">{number(one.value)}</span><span>{escape(one.name)}</span></div>'
        for one in measured[:4]
    )
    warned = "".join(
        f"<li>{escape(text)}</li>" for text in found.warnings[:MAX_WARNINGS]
    )
    n_more = len(found.warnings) - MAX_WARNINGS
    warned += (
        f"<li>There are {n_more:,} more warnings of this kind.</li>"
        if n_more > 0
        else ""
    )
    notice = (
        f'<div class="warn"><strong>Look at this first</strong><ul>{warned}</ul></div>'
        if warned
        else (
            '<p class="good">No leak suspects, id-like or constant columns, many repeated or mostly missing values.</p>'
        )
    )
    return f'<div class="cards">{cards}</div>{text}{notice}'


def _scores(measured: list[Score], it: Subject) -> str:
    rows = []
    for one in measured:
        arrow = "higher is better" if one.higher_is_better else "lower is better"
        rows.append(
            [
                f"{escape(one.name)} <small>{arrow}</small>",
                f"<strong>{number(one.value)}</strong>",
                f"{number(one.low)} to {number(one.high)}",
                number(one.baseline),
            ]
        )
    note = (
        "<p>The interval says how far the score would vary over other draws of as many rows. The constant guess looks "
        "at no column: it predicts the mean, or the shares of the classes, of these rows.</p>"
    )
    return table(["metric", "model", "95 % interval", "constant guess"], rows) + note


def _data(found: looking.Facts, it: Subject, importance: Any) -> str:
    drift = it.train is not None
    rows = []
    listed = sorted(np.argsort(-importance, kind="stable")[:MAX_LISTED].tolist())
    for one in [found.columns[place] for place in listed]:
        missing = f"{one.missing:.1%}" if one.missing else ""
        row = [
            short(one.name),
            one.kind,
            svg.spark(one.counts, f"values of {one.name}"),
            missing,
            f"{one.distinct:,}",
        ]
        row.append(short(one.text, 60))
        row += ["" if one.drift is None else f"{one.drift:.2f}"] if drift else []
        rows.append(row)
    header = [
        "column",
        "type",
        "values",
        "missing",
        "distinct",
        "lowest … median … highest, or most frequent",
    ]
    header += ["drift"] if drift else []
    about = (
        "<p>Drift is the population stability index against the training rows: below 0.1 little, above 0.25 much.</p>"
        if drift
        else "<p>Give the training rows too (<code>--train</code>, <code>train=(X, y)</code>) to see drift and rows "
        "that occur in both.</p>"
    )
    target = _target(it)
    if len(listed) < len(found.columns):
        about += f"<p>Of {len(found.columns):,} columns these are the {len(listed):,} that matter most.</p>"
    return f"{target}{about}" + table(header, rows, "data")


def _target(it: Subject) -> str:
    if it.booster.classes is not None:
        count = np.bincount(
            it.label.astype(np.int64), minlength=len(it.booster.classes)
        )
        share = count / max(1, count.sum())
        rows = [
            (str(name), float(n), f"{int(n):,} ({part:.1%})")
            for name, n, part in zip(
                it.booster.classes.tolist()[:20], count, share, strict=False
            )
        ]
        return _figure(svg.bars(rows, "classes of the target", "c3"), "The target.")
    label = it.label if it.label.ndim == 1 else it.label[:, 0]
    counts, edges = histogram(label, 30)
    chart = Chart(
        (edges[0], edges[-1]),
        (0, float(counts.max())),
        label="histogram of the target",
        xlabel="target",
        ylabel="rows",
        size=(460, 190),
    )
    chart.columns(edges.tolist(), counts.tolist(), "c3")
    return _figure(chart.svg(), "The target.")


def _learning(it: Subject) -> str:
    rounds, values, name = findings.curve(it.booster, it.rows, it.label)
    lines = [("these rows", values, "c2")]
    if it.train is not None:
        lines.append(
            (
                "training rows",
                findings.curve(it.booster, it.train, it.train_label)[1],
                "c1",
            )
        )
    every = [one for _, own, _ in lines for one in own[1:] or own]
    low = min(every)
    high = max(every)
    room = 0.05 * ((high - low) or 1.0)
    chart = Chart(
        (0, max(rounds)),
        (low - room, high + room),
        label=f"{name} by round",
        xlabel="rounds",
        ylabel=name,
    )
    for _, own, color in lines:
        chart.line(rounds[1:], own[1:], color)
    legend = " ".join(
        f'<span class="key {color}"></span>{text}' for text, _, color in lines
    )
    return _figure(
        chart.svg(),
        f"{escape(name)}, {legend}. If the curve still falls at its end, train longer; if it "
        "rises, train shorter. In a blend of models, their rounds follow each other.",
    )


def _predictions(it: Subject) -> str:
    booster = it.booster
    label = it.label
    p = it.prediction
    names = (
        [str(one) for one in booster.classes.tolist()]
        if booster.classes is not None
        else []
    )
    if booster.link in ("sigmoid", "sigmoid2") and p.ndim == 1:
        names = names or ["0", "1"]
        return (
            _calibration(label, p, names[1])
            + _ranking(label, p)
            + _confusion(label, p > 0.5, names)
        )
    if booster.link in ("softmax", "one_vs_all"):
        chosen = p.argmax(axis=1)
        right = (chosen == label).astype(np.float64)
        names = names or outputs_of(booster)  # type: ignore[assignment]
        shown = _confusion(label, chosen, names) if len(names) <= 20 else ""
        return _calibration(right, p.max(axis=1), "the predicted class") + shown
    if p.ndim == 2:
        return f"<p>The model has {p.shape[1]} outputs; the scores above are means over them.</p>"
    return _regression(label, p)


def _calibration(label: Any, p: Any, name: str) -> str:
    found = curves.calibration(label, p)
    chart = Chart(
        (0, 1),
        (0, 1),
        label="calibration",
        xlabel=f"predicted probability of {name}",
        ylabel="share among the rows",
        size=(380, 320),
    )
    chart.line([0, 1], [0, 1], "muted", dashed=True)
    chart.errors(found.predicted.tolist(), found.low.tolist(), found.high.tolist())
    chart.line(found.predicted.tolist(), found.observed.tolist())
    tips = [
        f"{n:,} rows: predicted {a:.3f}, observed {b:.3f}"
        for n, a, b in zip(
            found.count.tolist(), found.predicted, found.observed, strict=True
        )
    ]
    chart.dots(found.predicted.tolist(), found.observed.tolist(), title=tips)
    return _figure(
        chart.svg(),
        "Calibration: on the diagonal, probabilities can be taken at their word.",
    )


def _ranking(label: Any, p: Any) -> str:
    if label.min() == label.max():
        return ""
    fpr, tpr, _ = curves.roc(label, p)
    kept = findings.spaced(len(fpr), 150)
    chart = Chart(
        (0, 1),
        (0, 1),
        label="ROC curve",
        xlabel="false positive rate",
        ylabel="true positive rate",
        size=(380, 320),
    )
    chart.line([0, 1], [0, 1], "muted", dashed=True)
    chart.line(fpr[kept].tolist(), tpr[kept].tolist())
    recall, precision, _ = curves.precision_recall(label, p)
    kept = findings.spaced(len(recall), 200)
    other = Chart(
        (0, 1),
        (0, 1),
        label="precision and recall",
        xlabel="recall",
        ylabel="precision",
        size=(380, 320),
    )
    other.line([0, 1], [float(label.mean())] * 2, "muted", dashed=True)
    other.line(recall[kept].tolist(), precision[kept].tolist())
    return _figure(chart.svg(), "ROC: how well the classes are told apart.") + _figure(
        other.svg(), "Precision and recall; dashed: the share of the class."
    )


def _confusion(label: Any, chosen: Any, names: Any) -> str:
    found = curves.confusion(label, chosen, len(names))
    drawn = svg.matrix(found, names, "confusion matrix")
    return _figure(
        drawn, "Confusion: actual classes in rows, predicted ones in columns."
    )


def _regression(label: Any, p: Any) -> str:
    kept = findings.spaced(len(label), 600)
    low, high = quantiles(np.concatenate([label, p]), [0.002, 0.998])
    chart = Chart(
        (low, high),
        (low, high),
        label="predicted and actual",
        xlabel="prediction",
        ylabel="label",
        size=(380, 320),
    )
    inside = [k for k in kept if low <= label[k] <= high and low <= p[k] <= high]
    chart.dots(p[inside].tolist(), label[inside].tolist(), "c1 faint", 2)
    chart.line([low, high], [low, high], "c2", dashed=True)
    order = np.argsort(p, kind="stable")
    groups = [part for part in np.array_split(order, 10) if len(part)]
    xs = [float(p[part].mean()) for part in groups]
    means = [float(label[part].mean()) for part in groups]
    error = label - p
    reach = float(quantiles(np.abs(error), 0.99)) or 1.0
    counts, edges = histogram(np.clip(error, -reach, reach), 31)
    other = Chart(
        (-reach, reach),
        (0, float(counts.max())),
        label="residuals",
        xlabel="label − prediction",
        ylabel="rows",
        size=(380, 320),
    )
    other.columns(edges.tolist(), counts.tolist())
    ends = min(xs + means), max(xs + means)
    third = Chart(
        ends,
        ends,
        label="calibration",
        xlabel="mean prediction",
        ylabel="mean label",
        size=(380, 320),
    )
    third.line(ends, ends, "muted", dashed=True)
    third.line(xs, means)
    third.dots(xs, means)
    return (
        _figure(chart.svg(), "Predicted and actual; dots on the dashed line are right.")
        + _figure(
            other.svg(),
            f"Residuals; their median is {number(float(np.median(error)), 3)}.",
        )
        + _figure(
            third.svg(),
            "Calibration by tenths of the predictions: on the diagonal, means can be believed.",
        )
    )


def _segments(it: Subject, loss: Any, loss_name: str, order: Any) -> str:
    found = findings.segments(it.booster, it.rows, loss, order)
    if not found:
        return "<p>There are too few rows to compare segments.</p>"
    whole = float(loss.mean())
    shown = found[:10] + [one for one in found[10:][-5:] if one.excess < 0]
    rows = []
    for one in shown:
        ratio = one.loss / whole if whole else 1.0
        word = "worse" if one.excess > 3 else "better" if one.excess < -3 else ""
        rows.append(
            [
                f"{short(one.column)}: {short(one.value, 30)}",
                f"{one.n_rows:,}",
                number(one.loss),
                f"{number(one.low)} to {number(one.high)}",
                f'<span class="{word}">{ratio:.2f} times</span>',
            ]
        )
    note = (
        f"<p>Mean {loss_name} of all rows: <strong>{number(whole)}</strong>. The ten segments with the clearest "
        "excess, and the five best, among quarters and categories of the most important columns.</p>"
    )
    return note + table(
        ["segment", "rows", f"mean {loss_name}", "95 % interval", "of the mean"], rows
    )


def _importance(it: Subject, by_kind: dict[str, Any]) -> str:
    figures = []
    for kind, values in by_kind.items():
        order = [
            j
            for j in np.argsort(-values, kind="stable")[:MAX_COLUMNS]
            if values[j] != 0
        ]
        rows = [
            (it.booster.feature_names[j], float(values[j]), number(float(values[j]), 3))
            for j in order
        ]
        figures.append(_figure(svg.bars(rows, NAMES[kind]), NAMES[kind] + "."))
    return '<div class="figures">' + "".join(figures) + "</div>"


def _rows(it: Subject, loss: Any) -> str:
    chosen = findings.samples(it.label, it.prediction, loss)
    part = findings.some(it.rows, np.array([row for row, _ in chosen]))
    try:
        told = it.booster.explain(part)
    except SapwoodError as reason:
        return f"<p>{escape(str(reason))}</p>"
    blocks = []
    for k, (row, why) in enumerate(chosen):
        output = (
            0
            if told.output_names is None
            else int(np.argmax(np.atleast_1d(it.prediction[row])))
        )
        values = (
            told.values[k] if told.output_names is None else told.values[k, :, output]
        )
        base = float(np.atleast_1d(told.base_values[k])[output])
        name = "" if told.output_names is None else f" of {told.output_names[output]}"
        drawn = svg.waterfall(_steps(told, values, k), base, f"row {row} explained")
        said = f"{_shown(it, row)}. The score{escape(name)} is {number(base + float(values.sum()))}."
        blocks.append((f"row {row}: {why}", _figure(drawn, said)))
    return _picker("row", blocks) + (
        "<p>A bar is what the value of a column adds to the raw score of the row (its Shapley value). Bars start at "
        "the average and end at the score of the row.</p>"
    )


def _steps(told: Any, values: Any, row: int, n: int = 9) -> list[tuple[str, float]]:
    order = np.argsort(-np.abs(values), kind="stable")
    kept = [j for j in order[:n] if values[j] != 0]
    steps = [
        (f"{told.feature_names[j]} = {told.shown(row, j)}", float(values[j]))
        for j in kept
    ]
    rest = float(values.sum() - values[kept].sum())
    return (
        [*steps, ("all other columns", rest)]
        if len(order) > len(kept) and rest
        else steps or [("no column", 0.0)]
    )


def _shown(it: Subject, row: int) -> str:
    p = it.prediction[row]
    booster = it.booster
    truth = escape(str(it.y[row]))
    if booster.classes is not None and booster.n_outputs == 1:
        return f"Probability of {escape(str(booster.classes[1]))}: <strong>{p:.3f}</strong>; in truth {truth}"
    if booster.classes is not None:
        k = int(np.argmax(p))
        return f"Predicted {escape(str(booster.classes[k]))} ({p[k]:.3f}); in truth {truth}"
    return f"Predicted <strong>{number(float(np.atleast_1d(p)[0]))}</strong>; in truth {truth}"


def _picker(what: str, blocks: list[tuple[str, str]]) -> str:
    """Blocks to open one by one; a script turns them into a choice of one."""
    opened = [
        f'<details class="pick" data-name="{escape(name)}"{" open" if k == 0 else ""}><summary>{escape(name)}</summary>'
        f"{content}</details>"
        for k, (name, content) in enumerate(blocks)
    ]
    return f'<div class="picker" data-what="{what}">{"".join(opened)}</div>'


def _model(it: Subject) -> str:
    booster, fingerprint = it.booster, it.booster.fingerprint()
    about = [
        ["objective", escape(booster.objective)],
        ["rounds", f"{booster.n_rounds:,}"],
        ["trees", f"{booster.trees.n_trees:,}"],
        ["leaves", f"{int((booster.trees.left == 0).sum()):,}"],
        ["linear leaves", "yes" if booster.linear else "no"],
        ["columns", f"{booster.n_columns:,}"],
        ["fingerprint of the model", f"<code>{fingerprint}</code>"],
        [
            "fingerprint of its training data",
            f"<code>{escape(booster.data_fingerprint) or '–'}</code>",
        ],
        ["Sapwood", escape(__version__)],
    ]
    params = dict(sorted(booster.params.items()))
    listed = escape(json.dumps(params, indent=2, default=str), lines=True)
    chosen = ""
    if booster.chosen:
        story = escape(str(booster.chosen), lines=True)
        chosen = f"<h3>What the automatic fit chose</h3><pre>{story}</pre>"
    code = escape(
        "import sapwood as sw\n\n"
        'model = sw.load("model.sapwood")\n'
        f'assert model.fingerprint() == "{fingerprint}"\n\n'
        "# Training again on the same rows, with the same settings and seed, gives the same bytes:\n"
        "# on any number of threads, on any machine.\n"
        f'# Dataset(X, y).fingerprint() must be "{booster.data_fingerprint[:16]}..."',
        lines=True,
    )
    return (
        table(["", ""], about, "about")
        + chosen
        + f"<h3>How to check that this is the model</h3><pre>{code}</pre>"
        + f"<details><summary>All parameters</summary><pre>{listed}</pre></details>"
    )
