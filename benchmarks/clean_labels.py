"""What a factor on the scores of classes costs and saves, where labels have little
noise or none.

    python benchmarks/clean_labels.py --tables 40 --quality fast

Random lists of rules over eight columns, 400 to 4,000 rows, make the labels. Some of
the training and test labels are then replaced by the other class. Three ways to choose
the factor are compared by the log loss of a test part:

    none      probabilities as the trees give them
    doubt     mistaken training rows are taken for wrong labels
    trial     mistaken training rows are held out by halves first, as `sapwood.boost.auto.fit` does
"""

from __future__ import annotations

import argparse
import importlib
import warnings

import numpy as np
import pandas as pd

import sapwood
from sapwood.boost.auto import confidence

NOISE = 0.0, 0.0003, 0.001, 0.003
auto = importlib.import_module("sapwood.boost.auto.fit")
# The highest factor, and the part of the rows that may be doubtful.
WAYS = {
    "none": (1.0, 0.0),
    "doubt": (confidence.MOST, 0.0),
    "trial": (confidence.MOST, auto.MOST_SUSPECTS),
}


def rules(seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """A table and the label that its rules say: the first rule that holds decides."""
    rng = np.random.default_rng(seed)
    n = int(np.exp(rng.uniform(np.log(600), np.log(6000))))
    words = rng.integers(0, rng.integers(2, 7, 5), (n, 5))
    numbers = rng.normal(size=(n, 3)).round(2)
    label = np.full(n, int(rng.integers(2)))
    open_ = np.ones(n, bool)
    for _ in range(rng.integers(3, 9)):
        holds = np.ones(n, bool)
        for column in rng.choice(8, rng.integers(1, 4), replace=False):
            if column < 5:
                holds &= words[:, column] == words[rng.integers(n), column]
            else:
                holds &= (numbers[:, column - 5] > rng.normal()) == (rng.random() < 0.5)
        label[holds & open_], open_ = int(rng.integers(2)), open_ & ~holds
    table = pd.DataFrame({f"w{at}": pd.Categorical(words[:, at]) for at in range(5)})
    return table.assign(**{f"x{at}": numbers[:, at] for at in range(3)}), label


def loss(
    model: sapwood.SapwoodClassifier, table: pd.DataFrame, label: np.ndarray
) -> float:
    """The log loss, probabilities clipped at 1e-9."""
    p = np.clip(model.predict_proba(table), 1e-9, 1.0 - 1e-9)
    return float(-np.log(p[np.arange(len(label)), label]).mean())


def main() -> None:
    """Print, for each share of noise and each way, the mean log loss, and its geometric
    mean over that of no factor.
    """
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tables", type=int, default=40)
    parser.add_argument("--quality", default="fast")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    for noise in NOISE:
        found: dict[str, list[float]] = {way: [] for way in WAYS}
        for seed in range(given.tables):
            table, label = rules(seed)
            if not 0.02 < label.mean() < 0.98:
                continue
            rng = np.random.default_rng(seed)
            label = np.where(rng.random(len(label)) < noise, 1 - label, label)
            cut = 2 * len(label) // 3
            for way, (most, suspects) in WAYS.items():
                confidence.MOST = most
                auto.MOST_SUSPECTS = suspects
                model = sapwood.SapwoodClassifier(
                    quality=given.quality, random_state=seed
                )
                found[way].append(
                    loss(model.fit(table[:cut], label[:cut]), table[cut:], label[cut:])
                )
        for way, losses in found.items():
            ratio = np.exp(np.mean(np.log(losses) - np.log(found["none"])))
            of = f"{len(losses)} tables"
            print(
                f"noise {noise:.2%}  {way:6} mean {np.mean(losses):.4f}  over none {ratio:.4g}  ({of})",
                flush=True,
            )


if __name__ == "__main__":
    main()
