"""Arguments of a `Dataset` that say how it is binned.

In: what a caller gave, under our names or a peer's. Out: names of columns, parameters
of bins, columns of categories.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sapwood import params
from sapwood.data import categories
from sapwood.data.dataset_file import BIN_PARAMS
from sapwood.data.derived import coded
from sapwood.errors import DataError, ParameterError
from sapwood.params import peers

# parameters of a training that are arguments here
FIXED_BY_DATASET = (*BIN_PARAMS, "categorical_features")
# what columns of these kinds become
DERIVED = ("date_features", "text_features", "embedding_features")
# LightGBM's parameters of a table that have no meaning here but their defaults.
OF_TABLES = {
    "max_bin_by_feature",
    "forcedbins_filename",
    "use_missing",
    "ignore_column",
    "bin_construct_sample_cnt",
}
BY_RECIPE = ("max_bins", "min_samples_bin")  # those that a recipe may set


def usual() -> dict[str, Any]:
    """The arguments of a `Dataset` that say how it is binned, with their defaults."""
    defaults = params.defaults() | dict.fromkeys(BY_RECIPE)
    return {name: defaults[name] for name in FIXED_BY_DATASET}


def arguments(
    function: Callable[..., Any],
    own: Sequence[Any],
    names: Sequence[str] | None,
    reference: Any,
    more: Mapping[str, Any],
) -> tuple[Sequence[str] | None, dict[str, Any], Any]:
    """Names of columns, the parameters of `BIN_PARAMS` and the device, and
    `categorical_features`: checked.

    They are given under our names or the peers', by a recipe, or by LightGBM's
    ``params``, a dict for a whole training. A reference has its own.
    """
    known = params.names()
    given = {
        name: value
        for (name, default), value in zip(usual().items(), own, strict=True)
        if value is not default
    }
    more = dict(more)
    whole = more.pop("params", None) or {}
    if not isinstance(whole, Mapping):
        raise ParameterError(
            f"params is a {type(whole).__name__}; give a dict of names and values."
        )
    more.pop("free_raw_data", None)  # LightGBM's: see kept_table.py
    names = more.pop("feature_name", None) if names is None else names
    names = None if isinstance(names, str) and names == "auto" else names
    taken = (*FIXED_BY_DATASET, "recipe", "device", *DERIVED)
    peers_names = {
        name: more.pop(name) for name in list(more) if known.get(name) in taken
    }
    peers.refuse_arguments(function, more, known, "the params of sapwood.train")
    if reference is not None:
        if not hasattr(reference, "cuts"):
            raise DataError(
                f"reference is a {type(reference).__name__}; give the Dataset whose bins these rows get."
            )
        bins = {name: getattr(reference, name) for name in BIN_PARAMS} | {
            "device": reference.device.name
        }
        bins |= dict.fromkeys(DERIVED)  # as the reference has them
        own_names = reference.feature_names if reference.named else None
        return (
            names,
            bins,
            categories.known(coded(reference.times, reference.categories), own_names),
        )
    for name in OF_TABLES & whole.keys():
        # raises where bins would have to be others
        peers.is_default_here(name, whole[name])
    of_training = {
        name: value for name, value in whole.items() if known.get(name) in taken
    }
    settings = params.resolve({**of_training, **peers_names, **given})
    bins = {name: settings[name] for name in (*BIN_PARAMS, "device", *DERIVED)}
    categorical = settings["categorical_features"]
    texts = settings["text_features"]
    if texts == "auto" and categorical != "auto":
        bins["text_features"] = None  # what is text is said by hand
    if isinstance(texts, list) and (
        categorical is None or isinstance(categorical, list)
    ):
        categorical = [
            *(categorical or ()),
            *(one for one in texts if one not in (categorical or ())),
        ]
    return names, bins, categorical
