"""The commands, their flags and their help.

In: arguments. Out: an exit status.
"""

import json
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from sapwood import __version__
from sapwood.cli import INTERRUPTED, tables
from sapwood.cli.show import Output, python_warnings
from sapwood.errors import ParameterError, SapwoodError
from sapwood.printable import printable

app = typer.Typer(
    name="sapwood",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Gradient boosting from the command line.\n\nFrom a table in a file to a model, its scores, its explanation "
    "and a report:\n\n  sapwood train data.csv -t price -o m.sapwood --save-holdout test.csv\n\n"
    "  sapwood report m.sapwood --data test.csv -o report.html\n\n"
    "Files: CSV, TSV, Parquet, Feather, JSON lines, by the end of the name. Text columns are categories; missing "
    "values may stay. Nothing is written but what -o and --save-holdout name.\n\n"
    "Exit status: 0 done, 1 an error in the data or the model, 2 wrong usage, 130 interrupted.",
)

Data = Annotated[
    Path,
    typer.Argument(
        help="File with the rows; - for CSV from stdin.", show_default=False
    ),
]
Model = Annotated[
    Path,
    typer.Argument(help="Model file: Sapwood's, XGBoost's, LightGBM's or CatBoost's."),
]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Print results, warnings and errors only.")
]
Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON object, and errors as JSON too.")
]
Target = Annotated[
    str | None, typer.Option("--target", "-t", help="Name of the column to predict.")
]
KnownTarget = Annotated[
    str | None,
    typer.Option(
        "--target",
        "-t",
        help="Name of the target; by default the column that the model lacks.",
    ),
]
Params = Annotated[
    list[str] | None,
    typer.Option(
        "--param",
        "-p",
        help="A parameter, as name=value, such as max_depth=6. May be repeated.",
    ),
]
Drop = Annotated[
    list[str] | None,
    typer.Option("--drop", help="Column not to learn from. May be repeated."),
]
Weight = Annotated[
    str | None, typer.Option("--weight", help="Column with the weights of rows.")
]
Task = Annotated[str, typer.Option(help="auto, regression or classification.")]
Metric = Annotated[
    list[str] | None,
    typer.Option("--metric", "-m", help="Metric to print. May be repeated."),
]
Seed = Annotated[
    int | None, typer.Option(help="Seed of all random choices.", show_default="0")
]
Threads = Annotated[
    int | None,
    typer.Option(help="Threads; all by default. They do not change the model."),
]
Force = Annotated[
    bool,
    typer.Option(
        "--force", help="Replace a file of another kind, whatever its name is."
    ),
]
Seconds = Annotated[
    float | None, typer.Option("--time-limit", help="Seconds that it may take.")
]


def _do(output: Output, work: Callable[[], None]) -> None:
    """Do a command's work; what goes wrong becomes one line, or a JSON object, and an
    exit status.
    """
    try:
        with python_warnings(output):
            work()
        output.end()
    except SapwoodError as error:
        _complain(output, error, 2 if isinstance(error, ParameterError) else 1)
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None
    except MemoryError:
        _complain(output, DataTooLarge("there is not enough memory."), 1)
    except BrokenPipeError:  # the reader of our output has left, as `head` does
        sys.stderr.close()
        raise SystemExit(1) from None
    except OSError as error:
        _complain(output, error, 1)
    except Exception as error:
        # not foreseen: one line all the same, with the place, so that it can be
        # reported
        at = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(at.filename).name}, line {at.lineno}"
        _complain(
            output,
            Unforeseen(f"{type(error).__name__}: {error} (not foreseen, in {where})"),
            1,
        )
    finally:
        tables.forget_stdin()


class DataTooLarge(SapwoodError):
    """The memory is too small."""


class Unforeseen(SapwoodError):
    """An error that no check has foreseen."""


def _complain(output: Output, error: Exception, status: int) -> None:
    message = printable(str(error), lines=isinstance(error, SapwoodError))
    if output.as_json:
        print(
            json.dumps(
                {"error": message, "kind": type(error).__name__, "status": status}
            ),
            file=sys.stderr,
        )
    else:
        print(f"error: {message}", file=sys.stderr)
    raise SystemExit(status)


@app.command()
def train(
    data: Data,
    target: Target = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Model file to write.")
    ] = None,
    task: Annotated[
        str | None,
        typer.Option(help="auto, regression or classification.", show_default="auto"),
    ] = None,
    valid: Annotated[
        Path | None, typer.Option(help="File with rows to measure on.")
    ] = None,
    holdout: Annotated[
        float | None,
        typer.Option(
            help="Share of the rows to measure on, not to learn from.",
            show_default="0.2",
        ),
    ] = None,
    save_holdout: Annotated[
        Path | None, typer.Option(help="File to write the held-out rows to.")
    ] = None,
    folds: Annotated[
        int | None, typer.Option(help="Cross-validate, then learn from all rows.")
    ] = None,
    time_column: Annotated[
        str | None, typer.Option(help="Hold out the last rows by this column.")
    ] = None,
    weight: Weight = None,
    drop: Drop = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(help="Learn from these columns only. May be repeated."),
    ] = None,
    quality: Annotated[
        str | None,
        typer.Option(
            help="fast, balanced, best: how much to try; none: one plain training."
        ),
    ] = None,
    rounds: Annotated[
        int | None, typer.Option(help="Rounds of one plain training.")
    ] = None,
    early_stopping: Annotated[
        int | None, typer.Option(help="Stop after so many rounds without progress.")
    ] = None,
    time_limit: Seconds = None,
    param: Params = None,
    config: Annotated[
        Path | None,
        typer.Option("--config", "-c", help="TOML file with any of these settings."),
    ] = None,
    metric: Metric = None,
    seed: Seed = None,
    threads: Threads = None,
    force: Force = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Train a model on a file, and measure it.

    By default a fifth of the rows is held out, the model learns from the others, and
    the scores on the held-out rows are printed. --folds measures by cross-validation
    and then learns from all rows.

    A TOML file may hold any flag but --config under its name (target = "price",
    time_limit = 60), and parameters under [params]. Flags win over the file.
    """
    from sapwood.cli import train as work
    from sapwood.cli.settings import settings_of

    out = Output(quiet, as_json)

    def run_it() -> None:
        flags = {
            "target": target,
            "output": output,
            "task": task,
            "valid": valid,
            "holdout": holdout,
            "folds": folds,
            "save_holdout": save_holdout,
            "time_column": time_column,
            "weight": weight,
            "drop": drop,
            "keep": keep,
            "quality": quality,
            "rounds": rounds,
            "early_stopping": early_stopping,
            "time_limit": time_limit,
            "metric": metric,
            "seed": seed,
            "threads": threads,
            "param": param,
            "force": force or None,
        }
        work.train(data, settings_of(config, flags), out, config)

    _do(out, run_it)


@app.command()
def predict(
    model: Model,
    data: Data,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File to write; else CSV to stdout."),
    ] = None,
    proba: Annotated[
        bool, typer.Option(help="Also write the probability of every class.")
    ] = False,
    raw: Annotated[
        bool, typer.Option(help="Write raw scores (log-odds, say) instead.")
    ] = False,
    keep: Annotated[
        list[str] | None,
        typer.Option(help="Column of the file to copy. May be repeated."),
    ] = None,
    batch_size: Annotated[
        int,
        typer.Option(
            min=1, max=2**31 - 1, help="Rows in memory at once; changes no prediction."
        ),
    ] = 65536,
    force: Force = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Predict the rows of a file.

    Batch by batch: the file may be larger than the memory.
    """
    from sapwood.cli import use

    out = Output(quiet, as_json)
    _do(
        out,
        lambda: use.predict(
            model, data, output, batch_size, proba, raw, keep or [], force, out
        ),
    )


@app.command()
def evaluate(
    model: Model,
    data: Data,
    target: KnownTarget = None,
    metric: Metric = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Print scores of a model on a file.

    With 95 % intervals, beside the scores of a constant guess.
    """
    from sapwood.cli import use

    out = Output(quiet, as_json)
    _do(out, lambda: use.evaluate(model, data, target, metric or [], out))


@app.command()
def explain(
    model: Model,
    data: Data,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File for Shapley values of all rows."),
    ] = None,
    row: Annotated[
        int | None,
        typer.Option(help="Say in words why this row (from 0) has its score."),
    ] = None,
    kind: Annotated[
        str, typer.Option(help="Kind of importance: shap, permutation, total_gain, ...")
    ] = "shap",
    target: KnownTarget = None,
    top: Annotated[int, typer.Option(min=1, help="How many columns to print.")] = 10,
    force: Force = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Say what the predictions are made of.

    Which columns matter on these rows; why one row has its score (--row); or all
    effects of all rows (-o).
    """
    from sapwood.cli import use

    out = Output(quiet, as_json)
    _do(
        out,
        lambda: use.explain(model, data, output, row, kind, target, top, force, out),
    )


@app.command()
def report(
    model: Model,
    data: Annotated[
        Path,
        typer.Option("--data", "-d", help="File with rows that were not trained on."),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="HTML file to write.")],
    target: KnownTarget = None,
    train: Annotated[
        Path | None,
        typer.Option(help="File with the training rows: adds drift and their curve."),
    ] = None,
    title: Annotated[str | None, typer.Option(help="Title of the page.")] = None,
    force: Force = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Write one HTML page about a model.

    Data and warnings, scores with intervals, curves, errors by segment, importances,
    single rows, trees, parameters. The page loads nothing from anywhere, so it can be
    sent as it is.
    """
    from sapwood.cli import use

    out = Output(quiet, as_json)
    _do(out, lambda: use.report(model, data, output, target, train, title, force, out))


@app.command()
def inspect(
    model: Model,
    tree: Annotated[
        int | None, typer.Option(help="Print this tree (from 0) as text.")
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="How many columns to print.")] = 10,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Describe a model file.

    Objective, size, parameters, columns, fingerprint; or one of its trees (--tree).
    """
    from sapwood.cli import model as work

    out = Output(quiet, as_json)
    _do(out, lambda: work.inspect(model, tree, top, out))


@app.command()
def convert(
    model: Model,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", help="File to write: .sapwood, .onnx, .c or .json."
        ),
    ],
    force: Force = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Turn models into other formats.

    From XGBoost, LightGBM or CatBoost to ours, or from ours to ONNX, C or XGBoost's
    JSON.
    """
    from sapwood.cli import model as work

    out = Output(quiet, as_json)
    _do(out, lambda: work.convert(model, output, force, out))


@app.command()
def tune(
    data: Data,
    target: Target = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="TOML file for train --config."),
    ] = None,
    trials: Annotated[int, typer.Option(help="Trials at most.")] = 30,
    folds: Annotated[int, typer.Option(help="Folds of each trial.")] = 3,
    task: Task = "auto",
    metric: Annotated[
        str | None,
        typer.Option("--metric", "-m", help="What to improve; the loss by default."),
    ] = None,
    weight: Weight = None,
    drop: Drop = None,
    time_limit: Seconds = None,
    param: Params = None,
    seed: Seed = None,
    threads: Threads = None,
    force: Force = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Search for good parameters.

    By Optuna where it is installed, else at random. The best parameters are printed,
    and written with -o. Try train
    first: its automatic fit is hard to beat.
    """
    from sapwood.cli import tune as work
    from sapwood.cli.settings import settings_of

    out = Output(quiet, as_json)

    def run_it() -> None:
        flags = {
            "target": target,
            "task": task,
            "metric": [metric] if metric else [],
            "weight": weight,
            "drop": drop,
            "time_limit": time_limit,
            "seed": seed,
            "threads": threads,
            "param": param,
            "force": force or None,
        }
        work.tune(data, settings_of(None, flags), trials, folds, output, out)

    _do(out, run_it)


@app.command()
def bench(
    data: Data,
    target: Target = None,
    task: Task = "auto",
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of every library.")] = 100,
    repeat: Annotated[
        int, typer.Option(min=1, help="Trainings of each; the fastest counts.")
    ] = 1,
    drop: Drop = None,
    threads: Threads = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Compare with installed peers.

    One plain training of Sapwood and of each peer on the same numbers: seconds, and the
    loss on held-out rows. Categories are numbers here, so that all libraries see the
    same; free text is left out.
    """
    from sapwood.cli import bench as work
    from sapwood.cli.settings import settings_of
    from sapwood.device.threads import threads as available

    out = Output(quiet, as_json)

    def run_it() -> None:
        settings = settings_of(
            None, {"target": target, "task": task, "drop": drop, "threads": threads}
        )
        work.bench(data, settings, rounds, available(threads), repeat, out)

    _do(out, run_it)


@app.command()
def doctor(quiet: Quiet = False, as_json: Json = False) -> None:
    """Check this installation.

    Versions, threads, instruction set, devices, and whether the same training gives the
    same bytes.
    """
    from sapwood.cli import doctor as work

    out = Output(quiet, as_json)
    _do(out, lambda: work.doctor(out))


def _version(asked: bool) -> None:
    if asked:
        print(f"sapwood {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    pass  # the help of the program stands above, where the app is made


def run() -> int:
    """Run the command of `sys.argv`; the exit status."""
    try:
        return _run(as_json="--json" in sys.argv[1:])
    except SystemExit as end:
        # by a command, or by typer before the command began its work
        if end.code == INTERRUPTED:
            raise KeyboardInterrupt from None
        return end.code if isinstance(end.code, int) else 1


def _run(as_json: bool) -> int:
    """The same; wrong usage is a JSON object where JSON is asked for, else typer's
    words about it.
    """
    try:
        status = app(prog_name="sapwood", standalone_mode=False)
    except Exception as error:
        # typer's errors have it, whichever click they come from
        message = getattr(error, "format_message", None)
        if message is None:
            raise
        if as_json:
            _complain(Output(as_json=True), ParameterError(message()), 2)
        error.message = printable(error.message, lines=True)  # type: ignore[attr-defined]
        error.show()  # type: ignore[attr-defined]
        return int(error.exit_code)  # type: ignore[attr-defined]
    if status == INTERRUPTED:
        raise SystemExit(status)
    return status if isinstance(status, int) else 0
