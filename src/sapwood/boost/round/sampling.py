"""Row sampling: which rows grow the trees of a round.

In: resolved parameters and a trainer. Out: a trainer that knows its sampler, and draws
its rows round by round.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.data.dataset import Dataset
from sapwood.device import Trainer, host
from sapwood.errors import ParameterError, suggest, warn
from sapwood.params import rates
from sapwood.params.types import class_name

SAMPLERS = host.samplers() | {
    "none": {"fields": [], "takes_subsample": False, "by_gradient": False}
}


def check(params: Mapping[str, Any]) -> None:
    """Raise unless the sampler is known and the shares of goss add up to at most 1."""
    if params["sampling"] not in SAMPLERS:
        raise ParameterError(
            f"sampling={params['sampling']!r} is unknown; {suggest(params['sampling'], SAMPLERS)}"
        )
    if params["top_rate"] + params["other_rate"] > 1:
        raise ParameterError(
            f"top_rate={params['top_rate']:g} and other_rate={params['other_rate']:g} are more than all rows; choose "
            "shares that add up to at most 1."
        )


def prepare(
    trainer: Trainer,
    params: Mapping[str, Any],
    data: Dataset,
    classes: NDArray[np.float64] | None,
) -> None:
    """Configure the sampler of a trainer; ``classes``: (n_rows) the class of every row,
    where labels are classes.
    """
    name = params["sampling"]
    by_class = params["subsample_by_class"]
    share = None
    if by_class is not None:
        assert classes is not None
        place = {
            class_name(one): one for one in np.unique(data.of_all_holders(classes))
        }
        share = np.full(len(classes), params["subsample"])
        for one, part in by_class.items():
            if one not in place:
                raise ParameterError(
                    f"subsample_by_class has a class {one!r}; {suggest(one, place)}"
                )
            share[classes == place[one]] = part
    unit = data.group if params["sampling_unit"] == "group" else None
    fields = {field: params[field] for field in SAMPLERS[name]["fields"]}
    if fields.get("mvs_reg") == "auto":
        fields["mvs_reg"] = -1.0
    trainer.set_sampler("uniform" if name == "none" else name, fields, share, unit)


def _goss_warm_up(
    params: Mapping[str, Any], index: int, rate: Callable[[int], float]
) -> bool:
    """Whether a round of goss uses all rows, as the first 1 / learning_rate rounds do;
    not in a forest.
    """
    return (
        params["sampling"] == "goss"
        and params["boosting"] != "forest"
        and index < int(1 / rate(index))
    )


def warn_of_no_draw(params: Mapping[str, Any], rounds: range) -> None:
    """Warn where goss uses all rows in every round."""
    rate = params["learning_rate"]
    if not callable(rate) and all(
        _goss_warm_up(params, index, rates(rate)) for index in rounds
    ):
        warn(
            f"sampling='goss' takes all rows in its first 1 / learning_rate rounds, and there are {rounds.stop} in "
            "all: it draws none. Train for more rounds, raise learning_rate, or leave it out."
        )


def draw_of(
    params: Mapping[str, Any], index: int, rate: Callable[[int], float], copy: int = 0
) -> tuple[int, int, float | None]:
    """What `Trainer.sample` draws the rows of the trees of one round by, after its
    gradients (NUMERICS 6 and 10).

    ``rate``: the learning rate of a round, on which the warm-up of goss depends.
    ``copy``: each of the `n_parallel_trees` of a round has its own draws.
    """
    turn = (index - index % params["subsample_freq"]) * params[
        "n_parallel_trees"
    ] + copy
    return (
        params["random_state"],
        turn,
        None if _goss_warm_up(params, index, rate) else params["subsample"],
    )
