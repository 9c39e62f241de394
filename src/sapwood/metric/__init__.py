"""Metrics: what a model is measured by.

In: labels, predictions, weights. Out: a number; sums are exact, so the order of rows
never matters.
"""

from sapwood.metric.distribution import *  # noqa: F403
from sapwood.metric.functions import *  # noqa: F403  every formula is public
from sapwood.metric.ranking import *  # noqa: F403
from sapwood.metric.registry import (
    BINARY,
    CLASSES,
    METRICS,
    PEERS,
    RANKS,
    STEP,
    VALUE,
    Metric,
    resolve,
    with_gain,
)
from sapwood.metric.survival import *  # noqa: F403

__all__ = [
    "BINARY",
    "CLASSES",
    "METRICS",
    "PEERS",
    "RANKS",
    "STEP",
    "VALUE",
    "Metric",
    "resolve",
    "with_gain",
]
