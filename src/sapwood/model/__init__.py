"""The model: frozen trees, what they predict, and the file they live in.

In: grown trees and what is known about them. Out: predictions, importances, text,
frames and bytes.
"""

from sapwood.model.booster import Booster
from sapwood.model.io import load
from sapwood.model.trees import Trees

__all__ = ["Booster", "Trees", "load"]
