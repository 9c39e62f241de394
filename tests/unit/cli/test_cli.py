"""Every command, with good and with bad arguments, in this process."""

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import sapwood as sw
from sapwood.cli.app import run
from sapwood.cli.settings import settings_of

Call = Callable[..., SimpleNamespace]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rents as CSV, Parquet, Feather and JSON lines, and a model of each kind."""
    folder = tmp_path_factory.mktemp("cli")
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(
        {"size": rng.uniform(20, 120, 300), "city": rng.choice(["Bern", "Lyon"], 300)}
    )
    rows["floor"] = np.where(rng.random(300) < 0.2, np.nan, rng.integers(0, 6, 300))
    rows["rent"] = (
        rows["size"] * 10 + 300 * (rows["city"] == "Bern") + rng.normal(0, 20, 300)
    )
    rows["dear"] = np.where(rows["rent"] > 800, "yes", "no")
    rows = rows.round(4)  # as JSON has them
    rows.to_csv(folder / "rents.csv", index=False)
    rows.to_csv(folder / "rents.tsv", index=False, sep="\t")
    rows.to_parquet(folder / "rents.parquet")
    rows.to_feather(folder / "rents.feather")
    rows.to_json(folder / "rents.jsonl", orient="records", lines=True)
    X = rows[["size", "city", "floor"]]
    sw.SapwoodRegressor(n_estimators=10).fit(X, rows["rent"]).booster_.save(
        folder / "rent.sapwood"
    )
    sw.SapwoodClassifier(n_estimators=10).fit(X, rows["dear"]).booster_.save(
        folder / "dear.sapwood"
    )
    numbers = sw.SapwoodRegressor(n_estimators=5).fit(
        rows[["size", "floor"]], rows["rent"]
    )
    numbers.booster_.save(folder / "numbers.sapwood")
    return folder


@pytest.fixture
def call(
    files: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> Call:
    """Run a command; words that name a file of the fixture become its path, ``out/``
    the folder of the test.
    """

    def do(line: str, **_: object) -> SimpleNamespace:
        words = [
            str(tmp_path / w[4:]) if w.startswith("out/") else w for w in line.split()
        ]
        words = [str(files / w) if (files / w).is_file() else w for w in words]
        monkeypatch.setattr(sys, "argv", ["sapwood", *words])
        capfd.readouterr()
        status = run()
        out, err = capfd.readouterr()
        return SimpleNamespace(status=status, out=out, err=err)

    return do


FORMATS = ("csv", "tsv", "parquet", "feather", "jsonl")


def test_every_format_gives_the_same_model(call: Call, tmp_path: Path) -> None:
    prints = set()
    for end in FORMATS:
        done = call(
            f"train rents.{end} -t rent --drop dear --rounds 5 --holdout 0 -o out/{end}.sapwood -q"
        )
        assert done.status == 0, done.err
        prints.add(sw.load(tmp_path / f"{end}.sapwood").fingerprint())
    assert len(prints) == 1


def test_train_measures_held_out_rows_and_saves_them(
    call: Call, tmp_path: Path
) -> None:
    done = call(
        "train rents.csv -t dear --drop rent --rounds 9 -o out/m.sapwood --save-holdout out/test.csv"
    )
    assert done.status == 0 and "logloss" in done.out and "constant guess" in done.out
    assert "task: classification, because the target has 2 classes" in done.err
    held = pd.read_csv(tmp_path / "test.csv")
    assert len(held) == 60 and list(held) == ["size", "city", "floor", "rent", "dear"]
    again = call(f"evaluate {tmp_path}/m.sapwood {tmp_path}/test.csv --target dear")
    assert re.findall(r"logloss +(\S+)", again.out) == re.findall(
        r"logloss +(\S+)", done.out
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.sapwood", "test.csv"]


def test_train_writes_nothing_that_was_not_asked_for(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = call("train rents.csv -t rent --rounds 3 --drop dear")
    assert (
        done.status == 0
        and "the model was not kept" in done.err
        and not list(tmp_path.iterdir())
    )


def test_train_with_folds_and_json(call: Call) -> None:
    done = call(
        "train rents.csv -t rent --drop dear --folds 3 --rounds 4 --json -m mae -p max_depth=2"
    )
    found = json.loads(done.out)
    assert (
        done.status == 0
        and done.err == ""
        and len(found["folds"]["mae"]["values"]) == 3
    )
    assert found["task"] == "regression" and len(found["fingerprint"]) == 64


def test_train_reads_toml_and_flags_win(call: Call, tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text(
        'target = "rent"\ndrop = ["dear"]\nholdout = 0\noutput = "m.sapwood"\n'
        "[params]\nn_estimators = 4\nmax_depth = 2\n"
    )
    done = call(
        f"train rents.csv --config {tmp_path}/c.toml -q -p max_depth=3 -p seed=3"
    )
    model = sw.load(tmp_path / "m.sapwood")
    assert done.status == 0 and model.n_rounds == 4 and model.params["max_depth"] == 3
    assert model.params["random_state"] == 3
    assert call(f"train rents.csv --config {tmp_path}/c.toml -q --rounds 2").status == 0
    assert sw.load(tmp_path / "m.sapwood").n_rounds == 2


def test_toml_has_every_flag(call: Call, tmp_path: Path) -> None:
    flags = set(
        re.findall(r"--([a-z-]+)", call("train --help").out.partition("Options:")[2])
    )
    text = """
        target = "rent"\ndrop = "dear"\nrounds = 3\nearly-stopping = 2\nthreads = 1\nseed = 4\njson = true\nquiet = true
        param = ["max_depth=2"]\ntask = "regression"\noutput = "m.sapwood"\nsave-holdout = "h.csv"\nholdout = 0.5
        time-column = "size"\nmetric = ["mae"]\nkeep = ["size", "floor"]\nforce = true\n"""
    others = {
        "valid": "v.csv",
        "folds": 2,
        "quality": "none",
        "time-limit": 5,
        "weight": "a",
    }  # which do not go with it
    assert flags - {"help", "config"} == {*re.findall(r"([a-z-]+) = ", text), *others}
    for name, value in others.items():
        (tmp_path / "c.toml").write_text(
            f'target = "rent"\n{name} = {json.dumps(value)}\n'
        )
        found = getattr(settings_of(tmp_path / "c.toml", {}), name.replace("-", "_"))
        assert found == (tmp_path / "v.csv" if name == "valid" else value)
    (tmp_path / "c.toml").write_text(text)
    done = call(f"train rents.csv --config {tmp_path}/c.toml")
    model = sw.load(tmp_path / "m.sapwood")
    assert (
        done.status == 0
        and json.loads(done.out)["rows_held_out"] == 150
        and model.params["max_depth"] == 2
    )
    assert model.n_rounds <= 3 and model.params["random_state"] == 4
    bad = {
        'rounds = "x"': "not a whole number",
        "threads = true": "not a whole number",
        "drop = [1]": "list of texts",
        "target = 3": "not text",
        "rounds = 3\n[params]\nn_estimators = 4": "these are one setting",
        'config = "d.toml"': "cannot name another",
    }
    for line, words in bad.items():
        (tmp_path / "bad.toml").write_text(line)
        done = call(f"train rents.csv --config {tmp_path}/bad.toml")
        assert done.status == 2 and words in done.err, done.err


def test_train_holds_out_the_last_rows(call: Call, tmp_path: Path) -> None:
    done = call(
        "train rents.csv -t rent --rounds 3 --time-column size --save-holdout out/t.parquet"
    )
    held = pd.read_parquet(tmp_path / "t.parquet")
    assert done.status == 0 and held["size"].min() > 90
    assert "trained on 240 rows, 60 held out, 3 rounds" in done.err
    days = pd.DataFrame(
        {
            "day": pd.date_range("2025-01-01", periods=50).astype(str),
            "y": np.arange(50.0),
        }
    )
    days.to_parquet(tmp_path / "days.parquet")  # text, as ISO 8601 writes dates
    assert (
        call(
            f"train {tmp_path}/days.parquet -t y --rounds 2 --time-column day --save-holdout out/d.csv"
        ).status
        == 0
    )
    assert pd.read_csv(tmp_path / "d.csv")["y"].min() == 40


def test_train_says_that_rows_lack_the_target(call: Call, tmp_path: Path) -> None:
    (tmp_path / "gaps.csv").write_text(
        "a,y\n" + "".join(f"{i},{i % 7 or ''}\n" for i in range(70))
    )
    done = call(f"train {tmp_path}/gaps.csv -t y --rounds 2 -q")
    assert done.status == 0 and "warning: 10 of 70 rows have no y" in done.err


def test_progress_without_a_terminal_is_lines(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sapwood.cli.show.EVERY", 0.0)
    err = call("train rents.csv -t rent --drop dear --rounds 3 --early-stopping 3").err
    assert re.search(
        r"^training: round 2 of at most 3, \d+ a second, holdout rmse \S+, best",
        err,
        re.MULTILINE,
    )
    err = call("train rents.csv -t rent --drop dear --quality fast").err
    assert re.search(r"^symmetric trees.*: round 1 of", err, re.MULTILINE)
    assert "round" not in call("train rents.csv -t rent --drop dear --rounds 3 -q").err


def test_the_automatic_fit_is_the_default(call: Call) -> None:
    done = call("train rents.csv -t rent --drop dear --quality fast")
    assert done.status == 0 and "quality='fast'" in done.err


def test_predict_in_any_batch_size(call: Call, tmp_path: Path, files: Path) -> None:
    whole = call("predict rent.sapwood rents.csv")
    assert whole.status == 0 and len(whole.out.splitlines()) == 301
    for size in (1, 7, 299):
        assert (
            call(f"predict rent.sapwood rents.parquet --batch-size {size}").out
            == whole.out
        )
    ours = sw.load(files / "rent.sapwood").predict(
        pd.read_csv(files / "rents.csv")[["size", "city", "floor"]]
    )
    assert [float(line) for line in whole.out.splitlines()[1:]] == ours.tolist()
    done = call("predict dear.sapwood rents.jsonl --proba --keep size -o out/p.parquet")
    found = pd.read_parquet(tmp_path / "p.parquet")
    assert done.status == 0 and list(found) == [
        "size",
        "prediction",
        "probability_no",
        "probability_yes",
    ]
    assert set(found["prediction"]) == {"yes", "no"}
    assert call("predict dear.sapwood rents.csv --raw").out.startswith('"raw_score"')


def test_explain(call: Call, tmp_path: Path) -> None:
    assert "size" in call("explain rent.sapwood rents.csv").out
    assert "because size" in call("explain rent.sapwood rents.csv --row 2").out
    assert (
        call("explain rent.sapwood rents.csv --kind permutation --target rent").status
        == 0
    )
    assert call("explain dear.sapwood rents.csv -o out/s.csv").status == 0
    found = pd.read_csv(tmp_path / "s.csv")
    assert found.shape == (300, 4) and list(found)[-1] == "base_value"
    values = json.loads(call("explain rent.sapwood rents.csv --row 0 --json").out)[
        "values"
    ]
    assert set(values) == {"size", "city", "floor"}


def test_inspect(call: Call) -> None:
    done = call("inspect dear.sapwood")
    assert "2 categories" in done.out and "logistic" in done.out
    about = json.loads(call("inspect rent.sapwood --json").out)
    assert about["rounds"] == 10 and about["column_list"][1]["type"] == "2 categories"
    assert call("inspect rent.sapwood --tree 0").out.startswith("tree 0 (round 0")


def test_convert(call: Call, tmp_path: Path) -> None:
    assert call("convert numbers.sapwood -o out/m.c").status == 0
    assert call("convert numbers.sapwood -o out/m.json").status == 0
    assert call(f"convert {tmp_path}/m.json -o out/back.sapwood").status == 0
    assert sw.load(tmp_path / "back.sapwood").n_rounds == 5
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "back.sapwood",
        "m.c",
        "m.json",
    ]


def test_report(call: Call, tmp_path: Path) -> None:
    done = call(
        "report dear.sapwood -d rents.csv -o out/r.html --target dear --title Rents"
    )
    assert (
        done.status == 0 and "<title>Rents</title>" in (tmp_path / "r.html").read_text()
    )
    assert (
        call("report dear.sapwood -d rents.csv -o nowhere/r.html -t dear").status == 1
    )


def test_tune_writes_a_file_for_train(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sapwood.cli.tune._has_optuna", lambda: False)
    done = call(
        "tune rents.csv -t rent --drop dear --trials 2 --folds 2 -o out/t.toml -p n_estimators=5"
    )
    assert done.status == 0 and "best of 2 trials: rmse" in done.out
    assert call(f"train rents.csv --config {tmp_path}/t.toml -q").status == 0


def test_bench(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sapwood.cli.bench.PEERS", {})
    done = call("bench rents.csv -t dear --drop rent --rounds 3 --threads 1")
    assert done.status == 0 and "sapwood" in done.out


BAD = [
    ("", 2, "Usage"),
    ("trian rents.csv", 2, "No such command"),
    ("train rents.csv", 2, "--target"),
    ("train rents.csv -t rant", 1, "did you mean 'rent'"),
    ("train rent.csv -t rent", 1, "there is no file"),
    ("train rents.csv -t rent -p max_dept=3", 2, "did you mean 'max_depth'"),
    ("train rents.csv -t rent -p max_depth", 2, "name=value"),
    ("train rents.csv -t rent -p max_depth=-4", 2, "max_depth"),
    ("train rents.csv -t rent --holdout 2", 2, "share of the rows"),
    ("train rents.csv -t rent --folds 1", 2, "2 or more"),
    ("train rents.csv -t rent --folds 3 --holdout 0.1", 2, "two ways to measure"),
    ("train rents.csv -t rent --task clustering", 2, "is unknown"),
    ("train rents.csv -t rent -m rmsa", 2, "did you mean"),
    ("train rents.csv -t rent --drop cyti", 1, "choose one of city"),
    (
        "train rents.csv -t rent -o nowhere/m.sapwood --rounds 2",
        1,
        "there is no folder",
    ),
    ("train rents.csv -t city --task regression", 1, "error: "),
    ("train rent.sapwood -t rent", 1, "does not say the format"),
    ("predict rents.csv rents.csv", 1, "error: "),
    ("predict numbers.sapwood rent.sapwood", 1, "does not say the format"),
    ("predict rent.sapwood rents.csv --json", 2, "predictions need a file then"),
    ("predict rent.sapwood rents.csv --keep nothing", 1, "has no column 'nothing'"),
    ("predict rent.sapwood rents.csv --proba", 2, "predict classes"),
    ("predict rent.sapwood rents.csv --batch-size 0", 2, "batch-size"),
    ("evaluate rent.sapwood rents.csv", 1, "which column"),
    ("explain rent.sapwood rents.csv --row 999", 2, "does not exist"),
    ("explain rent.sapwood rents.csv --kind gian", 2, "did you mean 'gain'"),
    ("inspect rents.csv", 1, "error: "),
    ("convert rent.sapwood -o m.txt", 2, "must end in one of"),
    ("tune rents.csv -t rent --trials 0", 2, "1 or more"),
    (
        "train rents.csv -t rent --weight city",
        1,
        "column 'city' cannot be weights: it is not numbers (it has '",
    ),
    ("train rents.csv -t city --task regression", 1, "say --task classification"),
    (
        "train rents.csv -t rent --time-column city",
        2,
        "--time-column city is not a time: it has '",
    ),
    ("train rents.csv -t rent --time-column size --folds 3", 2, "none are held out"),
    (
        "train rents.csv -t rent --rounds 5 -p n_estimators=3",
        2,
        "--rounds 5 and the parameter n_estimators=3",
    ),
    (
        "train rents.csv -t rent --rounds 5 -p num_boost_round=3",
        2,
        "these are one setting",
    ),
    ("train rents.csv -t rent --seed 5 -p random_state=3", 2, "these are one setting"),
    (
        "train rents.csv -t rent -p max_depth=5 -p max_depth=3",
        2,
        "max_depth is given twice",
    ),
    ("train rents.csv -t rent --threads -3", 2, "give 1 or more; without it, all CPUs"),
    ("bench rents.csv -t rent --threads 0", 2, "give 1 or more"),
    ("train rents.csv -t rent --rounds 0", 2, "--rounds 0 is too small"),
    (
        "train rents.csv -t rent --quality medium",
        2,
        "choose one of balanced, best, fast, none",
    ),
    ("inspect rent.sapwood --tree 100", 2, "--tree 100 does not exist; "),
    ("inspect rents.csv", 1, "rents.csv is no model: "),
    ("predict rents.csv rent.sapwood", 1, "Are the arguments swapped?"),
    ("predict - rents.csv", 1, "a model is not read from standard input"),
    ("train - -t rent --valid -", 2, "only one of the files"),
]


@pytest.mark.parametrize(
    ("line", "status", "message"), BAD, ids=[one[0] or "nothing" for one in BAD]
)
def test_what_is_wrong_is_one_line(
    call: Call, line: str, status: int, message: str
) -> None:
    done = call(line)
    assert (done.status, message in done.out + done.err) == (status, True), done.err
    assert "Traceback" not in done.err
    if done.err.startswith("error: "):
        assert len(done.err.splitlines()) == 1 and not done.out


def test_errors_are_json_where_asked_for(call: Call) -> None:
    done = call("train rents.csv -t rant --json")
    found = json.loads(done.err)
    assert (
        done.status == found["status"] == 1
        and found["kind"] == "DataError"
        and done.out == ""
    )
    for line in (
        "train rents.csv --bogus",
        "train rents.csv --rounds abc",
        "predict rent.sapwood",
        "nothing",
    ):
        done = call(f"{line} --json")
        found = json.loads(done.err)
        assert done.status == found["status"] == 2 and found["error"] and done.out == ""
    assert call("train --help --json").status == 0


def test_what_nobody_foresaw_is_one_line_too(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise TypeError("odd")

    monkeypatch.setattr("sapwood.cli.use.predict", fail)
    done = call("predict rent.sapwood rents.csv")
    assert done.status == 1 and re.fullmatch(
        r"error: TypeError: odd \(not foreseen, in test_cli.py, line \d+\)\n", done.err
    )


def test_an_output_is_no_input_and_no_other_output(
    call: Call, files: Path, tmp_path: Path
) -> None:
    rows = (files / "rents.csv").read_bytes()
    model = (files / "rent.sapwood").read_bytes()
    (tmp_path / "soft.csv").symlink_to(files / "rents.csv")
    (tmp_path / "hard.csv").hardlink_to(files / "rents.csv")
    (tmp_path / "c.toml").write_text("")
    lines = [
        "train rents.csv -t rent -o rents.csv",
        "train rents.csv -t rent -o out/soft.csv",
        "train out/soft.csv -t rent -o out/hard.csv",
        "train rents.csv -t rent --valid rents.tsv -o rents.tsv",
        "train rents.csv -t rent --config out/c.toml -o out/c.toml",
        "train rents.csv -t rent -o out/m.csv --save-holdout out/../"
        + tmp_path.name
        + "/m.csv",
        "predict rent.sapwood rents.csv -o rents.csv",
        "explain rent.sapwood rents.csv -o out/soft.csv",
        "report rent.sapwood -d rents.csv -t rent -o rent.sapwood",
        "convert rent.sapwood -o rent.sapwood",
        "tune rents.csv -t rent -o rents.csv",
    ]
    for line in lines:
        done = call(line)
        assert done.status == 2 and "would be overwritten" in done.err, (line, done.err)
    assert (files / "rents.csv").read_bytes() == rows and (
        files / "rent.sapwood"
    ).read_bytes() == model


def test_rows_from_standard_input(
    call: Call, files: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    for name in ("-", "/dev/stdin"):
        with open(files / "rents.csv") as monkey:
            monkeypatch.setattr(sys, "stdin", monkey)
            done = call(f"predict rent.sapwood {name}")
        assert (
            done.status == 0 and done.out == call("predict rent.sapwood rents.csv").out
        )
    with open(files / "rents.csv") as monkey:
        monkeypatch.setattr(sys, "stdin", monkey)
        done = call(
            "train - -t rent --drop dear --rounds 2 --save-holdout out/h.csv --json"
        )
    found = json.loads(done.out)
    assert (found["rows"], found["rows_trained"], found["rows_held_out"]) == (
        300,
        240,
        60,
    )
    assert [path.name for path in tmp_path.iterdir()] == ["h.csv"]  # the copy is gone


def test_a_file_that_fails_leaves_what_was_there(call: Call, tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("mine\n")
    assert (
        call("predict rent.sapwood rents.csv --keep nothing -o out/p.csv").status == 1
    )
    assert (tmp_path / "p.csv").read_text() == "mine\n" and len(
        list(tmp_path.iterdir())
    ) == 1


COMMANDS = (
    "train",
    "predict",
    "evaluate",
    "explain",
    "report",
    "inspect",
    "convert",
    "tune",
    "bench",
    "doctor",
)


@pytest.mark.parametrize("command", COMMANDS)
def test_help(call: Call, command: str) -> None:
    done = call(f"{command} --help")
    assert (
        done.status == 0
        and "Usage: sapwood " + command in done.out
        and "--json" in done.out
    )


def test_the_overview_names_every_command(call: Call) -> None:
    out = call("--help").out
    assert all(re.search(rf"^  {command} ", out, re.MULTILINE) for command in COMMANDS)
    assert "..." not in out.partition("Commands:")[2]  # no summary is cut
    assert call("--version").out == f"sapwood {sw.__version__}\n"


def test_without_the_extra_a_sentence(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    from sapwood.cli import main

    monkeypatch.setitem(sys.modules, "typer", None)
    with pytest.raises(SystemExit) as end:
        main()
    assert (
        end.value.code == 2 and "pip install 'sapwood[cli]'" in capfd.readouterr().err
    )


def test_distributions_and_survival_are_predicted_not_scored(
    call: Call, files: Path
) -> None:
    rows = pd.read_csv(files / "rents.csv")
    X = rows[["size", "floor"]]
    made = {
        "mean": sw.SapwoodDistribution("normal", n_folds=0, n_estimators=3).fit(
            X, rows["rent"]
        ),
        "risk": sw.SapwoodSurvival(n_estimators=3).fit(
            X, (rows["rent"], rows["dear"] == "yes")
        ),
    }
    for name, model in made.items():
        model.save(files / f"{name}.sapwood")
        said = call(f"predict {name}.sapwood rents.csv").out.split()
        assert said[0] == '"prediction"'
        np.testing.assert_allclose(np.array(said[1:], float), model.predict(X))
        assert call(f"predict {name}.sapwood rents.csv --raw").out.startswith(
            '"raw_score_0","raw_score_1"'
        )
        refused = call(f"evaluate {name}.sapwood rents.csv --target rent")
        assert refused.status == 2 and "about numbers or classes" in refused.err
        assert call(f"inspect {name}.sapwood").status == 0


def test_predict_reads_dates_booleans_and_text_as_evaluate_does(
    call: Call, tmp_path: Path
) -> None:
    """The file that was trained on, and one whose columns are empty."""
    rng = np.random.default_rng(1)
    rows = pd.DataFrame(
        {"day": pd.date_range("2020", periods=240, freq="7h").astype(str)}
    )
    rows["stamp"] = pd.date_range("2020", periods=240, freq="7h", tz="UTC").strftime(
        "%Y-%m-%dT%H:%M:%SZ"
    )
    rows["member"] = rng.random(240) < 0.5
    rows["note"] = [
        f"room {a} with view {b} number {i}"
        for i, (a, b) in enumerate(rng.integers(0, 9, (240, 2)))
    ]
    rows["size"] = rng.integers(1, 9, 240)
    rows["price"] = rows["size"] + 3.0 * rows["member"] + rng.normal(0, 0.1, 240)
    rows.to_csv(tmp_path / "rows.csv", index=False)
    rows.assign(day=None, stamp=None, member=None, note=None)[:9].to_csv(
        tmp_path / "empty.csv", index=False
    )
    assert (
        call(
            "train out/rows.csv --target price -o out/m.sapwood --rounds 20 --quiet"
        ).status
        == 0
    )
    for file, n in (("rows", 240), ("empty", 9)):
        done = call(
            f"predict out/m.sapwood out/{file}.csv -o out/{file}_p.csv --batch-size 50"
        )
        assert done.status == 0, done.err
        assert len(pd.read_csv(tmp_path / f"{file}_p.csv")) == n
    whole = sw.load(tmp_path / "m.sapwood").predict(
        pd.read_csv(tmp_path / "rows.csv", parse_dates=["day", "stamp"]).drop(
            columns="price"
        )
    )
    np.testing.assert_array_equal(
        pd.read_csv(tmp_path / "rows_p.csv")["prediction"], whole
    )
