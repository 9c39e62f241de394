"""Arguments of `train` and `cv`: rows and validation sets, in the order and under the
names of any library.

In: what a caller gave. Out: parameters, rows, and validation sets by name.
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from sapwood.data import kept_table
from sapwood.data.dataset import Dataset
from sapwood.data.deferred import Deferred
from sapwood.errors import DataError, ParameterError

Rows = Dataset | Deferred
Valid = Rows | Sequence[Rows | tuple[Rows, str]] | Mapping[str, Rows]
# the peers' names
TRAIN_SET = ("dtrain", "train_set", "pool")
VALID = ("valid_sets", "evals", "eval_set")


def peer_arguments(more: dict[str, Any], valid: Any = None) -> Any:
    """The validation sets, taken out of the arguments where they have a peer's name;
    names of sets go with them.

    A function of LightGBM's ``feval``, of XGBoost's ``custom_metric`` and ``obj``
    becomes a parameter.
    """
    if more.get("verbose_eval", 0) is None:
        del more["verbose_eval"]  # XGBoost's default: nothing is printed
    for name, ours in (
        ("feval", "eval_metric"),
        ("obj", "objective"),
        ("fobj", "objective"),
    ):
        if (function := more.pop(name, None)) is not None:
            more[ours] = function
    found = [name for name in VALID if more.get(name) is not None]
    given = [more.pop(name) for name in found]
    for name in VALID:
        more.pop(name, None)
    names = more.pop("valid_names", None)
    if given and (valid is not None or len(given) > 1):
        raise ParameterError(
            f"{found[0]} and valid are both validation sets; give one of them."
        )
    valid = given[0] if given else valid
    names = [names] if isinstance(names, str) else names
    if not names:
        return valid
    sets = valid if isinstance(valid, Sequence) else [valid]
    if len(names) != len(sets):
        raise ParameterError(
            f"valid_names has {len(names)} names for {len(sets)} validation sets."
        )
    return dict(zip(map(str, names), sets, strict=True))


def in_order(
    params: Any, data: Any, more: dict[str, Any]
) -> tuple[Mapping[str, Any], Any]:
    """Parameters and training rows, from either order and under the peers' names."""
    for name in TRAIN_SET:
        if name in more:
            if data is not None:
                raise ParameterError(
                    f"{name} and data are both the training rows; give one of them."
                )
            data = more.pop(name)
    # CatBoost's train(pool, params)
    if isinstance(params, Dataset | Deferred) and isinstance(data, Mapping | None):
        params, data = ({} if data is None else data), params
    if data is None:
        raise TypeError(
            "train() misses the training rows: train(params, data), data made with sapwood.Dataset(X, y)."
        )
    return params, data


def training_rows(rows: Any, params: Mapping[str, Any]) -> Dataset:
    """The training rows in bins."""
    if isinstance(rows, Deferred):
        return rows.dataset(params)
    if not isinstance(rows, Dataset):
        return cast(Dataset, rows)  # parameters are checked first
    return kept_table.for_training(rows, params)


def valid_sets(valid: Any, data: Dataset, rows: Any) -> dict[str, Dataset]:
    """Validation sets by name, in the bins of the training data."""
    if valid is None:
        sets: dict[str, Any] = {}
    elif isinstance(valid, Mapping):
        sets = {str(name): one for name, one in valid.items()}
    elif isinstance(valid, Sequence):
        named = [
            isinstance(one, tuple) and len(one) == 2 and isinstance(one[1], str)
            for one in valid
        ]
        pairs = [
            one if named[i] else (one, f"valid_{i}") for i, one in enumerate(valid)
        ]
        sets = {str(name): one for one, name in pairs}
        if len(sets) < len(pairs):
            raise DataError("two validation sets have the same name.")
    else:
        sets = {"valid": valid}
    for name, one in sets.items():
        if one is rows:
            sets[name] = data
        elif isinstance(one, Deferred):
            sets[name] = one.dataset(reference=data)
        elif isinstance(one, Dataset):
            sets[name] = kept_table.for_validation(one, data)
        else:
            raise DataError(
                f"validation set {name!r} is a {type(one).__name__}; make it with Dataset(X, label=y, reference=data), "
                "and give one, a list or a dict of such."
            )
    return sets
