"""Boosting: rounds over a dataset.

In: parameters and a `Dataset`. Out: a `Booster`, or the metrics of a cross-validation.
"""

from sapwood.boost.cv import cv
from sapwood.boost.train import train

__all__ = ["cv", "train"]
