"""What flags and a TOML file say to ``sapwood train`` and its kin.

In: the values of flags; a TOML file. Out: settings that go together; raises in words
where they do not.
"""

import tomllib
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from sapwood.cli import tables
from sapwood.errors import ParameterError, suggest
from sapwood.metric import METRICS
from sapwood.params.table import BY_NAME

TASKS = ("auto", "regression", "classification")
QUALITIES = ("fast", "balanced", "best", "none")


@dataclass
class Settings:
    """Everything that flags and a TOML file can say; the names are those of the
    flags.
    """

    target: str | None = None
    output: Path | None = None
    task: str = "auto"
    valid: Path | None = None
    holdout: float | None = None
    save_holdout: Path | None = None
    folds: int | None = None
    time_column: str | None = None
    weight: str | None = None
    drop: list[str] = field(default_factory=list)
    keep: list[str] = field(default_factory=list)
    quality: str | None = None
    rounds: int | None = None
    early_stopping: int | None = None
    time_limit: float | None = None
    metric: list[str] = field(default_factory=list)
    seed: int = 0
    threads: int | None = None
    quiet: bool = False
    json: bool = False
    force: bool = False
    params: dict[str, Any] = field(default_factory=dict)


LISTS = ("drop", "keep", "metric", "param")
PATHS = ("output", "valid", "save_holdout")
# setting: the types that it has in a TOML file, and how they are called; all others are
# text
TYPES: dict[str, tuple[tuple[type, ...], str]] = {
    **dict.fromkeys(LISTS, ((str, list), "text or a list of texts")),
    **dict.fromkeys(
        ("folds", "rounds", "early_stopping", "seed", "threads"),
        ((int,), "a whole number"),
    ),
    **dict.fromkeys(("holdout", "time_limit"), ((int, float), "a number")),
    **dict.fromkeys(("quiet", "json", "force"), ((bool,), "true or false")),
    "params": ((dict,), "a table: write it as [params]"),
}
# setting: the parameter that is the same
SAME = {
    "rounds": "n_estimators",
    "early_stopping": "early_stopping_rounds",
    "threads": "n_jobs",
    "seed": "random_state",
    "quality": "quality",
    "time_limit": "time_limit",
}


def settings_of(config: Path | None, flags: dict[str, Any]) -> Settings:
    """Settings of a TOML file, over which flags that were given win; paths in the file
    are relative to it.
    """
    flags = {name: value for name, value in flags.items() if value not in (None, [])}
    params = _params(flags, "")
    _refuse_twice(flags, params, "the flags")
    given, file_params = ({}, {}) if config is None else _file(config)
    for name in SAME:  # what a flag says is not said by the file, under whichever name
        if name in flags:
            for one in said(name, file_params):
                del file_params[one]
        elif said(name, params):
            given.pop(name, None)
    found = Settings(**{**given, **flags}, params={**file_params, **params})
    for name in ("drop", "keep", "metric"):
        value = getattr(found, name)
        setattr(found, name, [value] if isinstance(value, str) else list(value))
    _check(found)
    return found


def _params(given: dict[str, Any], where: str) -> dict[str, Any]:
    """The parameters of `--param` and of `[params]`, taken out of what was given."""
    several = given.pop("param", [])
    params: dict[str, Any] = dict(given.pop("params", {}))
    for name, value in map(
        parameter, [several] if isinstance(several, str) else several
    ):
        if name in params:
            raise ParameterError(
                f"{where}the parameter {name} is given twice; leave one out."
            )
        params[name] = value
    return params


def _refuse_twice(given: dict[str, Any], params: dict[str, Any], where: str) -> None:
    for name in SAME:
        for one in said(name, params) if name in given else ():
            flag = f"--{name.replace('_', '-')}"
            raise ParameterError(
                f"{where} give {flag} {given[name]} and the parameter {one}={params[one]}: these are one setting; "
                "leave one out."
            )


def said(name: str, params: dict[str, Any]) -> list[str]:
    """The parameters that say the same as a setting, also by a peer's name."""
    row = BY_NAME[SAME[name]]
    return [one for one in params if one == row.name or one in row.aliases]


def _file(config: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Settings and parameters of a TOML file."""
    tables.check_file(config)
    known = [*(one.name for one in fields(Settings)), "param"]
    try:
        given = tomllib.loads(config.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as cause:
        raise ParameterError(f"{config} is not TOML: {cause}.") from cause
    given = {name.replace("-", "_"): value for name, value in given.items()}
    for name, value in given.items():
        if name == "config":
            raise ParameterError(
                f"{config} has 'config', but a settings file cannot name another one."
            )
        if name not in known:
            hint = suggest(name, known)
            raise ParameterError(
                f"{config} has {name!r}, which train does not know; {hint} Parameters: [params]."
            )
        types, called = TYPES.get(name, ((str,), "text in quotes"))
        wrong = not isinstance(value, types) or (
            isinstance(value, bool) and bool not in types
        )
        if wrong or (
            isinstance(value, list) and not all(isinstance(one, str) for one in value)
        ):
            raise ParameterError(
                f"{config} has {name} = {value!r}, which is not {called}."
            )
    for name in PATHS:
        if name in given:
            given[name] = config.parent / str(given[name])
    params = _params(given, f"{config}: ")
    _refuse_twice(given, params, f"the settings of {config}")
    return given, params


def _check(found: Settings) -> None:
    """Raise where settings do not go together."""
    if found.target is None:
        raise ParameterError("which column is to be predicted? Say --target NAME.")
    if found.task not in TASKS:
        raise ParameterError(
            f"task {found.task!r} is unknown; {suggest(found.task, TASKS)}"
        )
    several = [
        name
        for name in ("valid", "holdout", "folds")
        if getattr(found, name) not in (None, 0)
    ]
    if len(several) > 1:
        raise ParameterError(
            f"--{several[0]} and --{several[1]} are two ways to measure; give one."
        )
    if found.holdout is not None and not 0 <= found.holdout < 1:
        raise ParameterError(
            f"--holdout {found.holdout} is not a share of the rows; give 0.2, say, or 0 for none."
        )
    if found.folds is not None and found.folds < 2:
        raise ParameterError(f"--folds {found.folds} is too few; give 2 or more.")
    if found.save_holdout is not None and (
        found.valid or found.folds or found.holdout == 0
    ):
        raise ParameterError(
            "--save-holdout writes the rows of --holdout, but none are held out here."
        )
    if found.time_column is not None and (
        found.valid or found.folds or found.holdout == 0
    ):
        raise ParameterError(
            "--time-column says which rows --holdout takes, but none are held out here."
        )
    if found.time_limit is not None and not found.time_limit > 0:
        raise ParameterError(
            f"--time-limit {found.time_limit} is not a number of seconds above 0."
        )
    if found.seed < 0:
        raise ParameterError(f"--seed {found.seed} is below 0; give 0 or more.")
    for name in ("rounds", "early_stopping", "threads"):
        value = getattr(found, name)
        if value is not None and value < 1:
            flag = name.replace("_", "-")
            also = "; without it, all CPUs are used" if name == "threads" else ""
            raise ParameterError(
                f"--{flag} {value} is too small; give 1 or more{also}."
            )
    if found.quality is not None and found.quality.lower() not in QUALITIES:
        raise ParameterError(
            f"--quality {found.quality} is unknown; {suggest(found.quality, QUALITIES)}"
        )
    for one in found.metric:
        if one.partition("@")[0].lower() not in METRICS:
            raise ParameterError(f"metric {one!r} is unknown; {suggest(one, METRICS)}")


def parameter(text: str) -> tuple[str, Any]:
    """``name=value`` as a name and a value: a number, a boolean, a list as TOML writes
    them, or else text.
    """
    name, mark, value = text.partition("=")
    if not mark or not name.strip():
        raise ParameterError(
            f"{text!r} is no parameter; write name=value, such as max_depth=6."
        )
    if value.strip() in ("none", "None", "null"):
        return name.strip(), None
    try:
        return name.strip(), tomllib.loads(
            f"x = {value.strip().replace('True', 'true').replace('False', 'false')}"
        )["x"]
    except (ValueError, RecursionError):
        return name.strip(), value.strip()
