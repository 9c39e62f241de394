"""An automatic fit: several candidates side by side, the best of them blended and
trained again on all rows.

In: what the user set, and a `Dataset`. Out: one `Booster`, which knows what was tried.
"""

from sapwood.boost.auto import deadline
from sapwood.boost.auto.candidates import LARGE, MIN_ROWS, enough, max_bins
from sapwood.boost.auto.distribution import fit as fit_distribution
from sapwood.boost.auto.fit import check, fit, without_holdout
from sapwood.boost.auto.ranking import rank

__all__ = [
    "LARGE",
    "MIN_ROWS",
    "check",
    "deadline",
    "enough",
    "fit",
    "fit_distribution",
    "max_bins",
    "rank",
    "without_holdout",
]
