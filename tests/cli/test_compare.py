"""`regard compare`: from one config to a report on several models."""

import csv
import json
import shutil
import signal
from pathlib import Path

import pytest
import typer

from regard.cli import compare as module
from regard.cli.compare import compare, short_name
from regard.data.corpus import Record
from regard.metrics.alignment_files import Links
from regard.run import Run
from regard.tasks.alignment import (
    Aligner,
    WeightSelection,
    gold_from_files,
    gold_from_records,
)
from regard.training.log import read_log
from regard.view import chart


def looked_up(run: Run, records: list[Record]) -> list[Links]:
    """By the one attention of this model."""
    texts = [(record["source"], record["target"]) for record in records]
    return Aligner(run.task).links(texts, [WeightSelection(0)])[0]


CONFIG = """
[data]
kind = "reorder"
size = 60
held_out = 12
vocabulary_size = 12
[text]
kind = "words"
[model]
kind = "luong"
dim = 8
[train]
steps = 3
examples_per_batch = 16
validate_every = 2
[decode]
kind = "greedy"
"""
PICTURES = {"length.png", "learning.png", "heat-score=dot.png", "heat-score=location.png"}
FILES = {"report.html", "report.md", "report.csv", "report.json"}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two variants of one config, compared."""
    folder = tmp_path_factory.mktemp("compare")
    (folder / "base.toml").write_text(CONFIG)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        compare(["base.toml"], sweep=["model.score=dot,location"])
    return folder


@pytest.fixture
def folder(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(trained, tmp_path / "copy")
    monkeypatch.chdir(tmp_path / "copy")
    return tmp_path / "copy"


@pytest.fixture
def undrawn(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same where matplotlib is not installed."""
    monkeypatch.setattr(chart, "can_draw", lambda: False)
    return folder


def table(folder: Path) -> list[dict[str, str]]:
    return list(csv.DictReader((folder / "runs/report/report.csv").read_text().splitlines()))


def test_the_report(folder: Path):
    report = folder / "runs/report"
    assert {path.name for path in report.iterdir()} == FILES | PICTURES
    assert all((report / name).read_bytes().startswith(b"\x89PNG") for name in PICTURES)
    found = json.loads((report / "report.json").read_text())
    assert [model["name"] for model in found["models"]] == ["score=dot", "score=location"]
    text = (report / "report.md").read_text()
    assert "BLEU: nrefs:1|case:mixed|eff:no|tok:13a" in text
    assert all(f"](<{name}>)" in text for name in PICTURES)
    for model, row in zip(found["models"], table(folder), strict=True):
        assert float(row["aer"]) == model["aer"]
        assert 0 < model["aer"] <= 1
        assert set(model["by_length"]) == {"6-10", "11-15"}


def test_the_numbers_are_those_of_the_run(folder: Path):
    for name, row in zip(["dot", "location"], table(folder), strict=True):
        run = Run.load(f"runs/base,score={name}")
        records = list(run.corpus().read("test"))
        scores = run.score(records)
        for metric in ("bleu", "chrf", "exact", "perplexity"):
            assert float(row[metric]) == pytest.approx(float(scores[metric])), metric
        assert int(row["parameters"]) == sum(p.numel() for p in run.model.parameters())
        steps = [e for e in read_log(Path(f"runs/base,score={name}")) if e["kind"] == "step"]
        seconds = sum(entry["seconds"] for entry in steps)
        assert float(row["training_seconds"]) == pytest.approx(seconds)
        speed = sum(entry["tokens"] for entry in steps) / seconds
        assert float(row["training_tokens"]) == pytest.approx(speed)
        truth = gold_from_records(records)
        assert truth is not None
        wrong = hits = total = 0
        for links, gold in zip(looked_up(run, records), truth.gold, strict=True):
            hits, total = hits + 2 * len(links & gold.sure), total + len(links) + len(gold.sure)
            wrong += links != gold.sure
        assert wrong
        assert float(row["aer"]) == pytest.approx(1 - hits / total)


def test_the_same_command_trains_nothing_again_and_goes_on_with_more(undrawn: Path, capsys):
    place = Path("runs/base,score=dot")
    before = (place / "log.jsonl").read_bytes()
    compare(["base.toml"], sweep=["model.score=dot,location"], join=3, show_attention=True)
    assert (place / "log.jsonl").read_bytes() == before
    shown = capsys.readouterr().out
    assert "sentences of 1 to 3 consecutive pairs" in shown
    assert shown.count("weight: 0") == 2
    assert "for pictures, pip install 'regard[plot]'" in shown
    models = json.loads(Path("runs/report/report.json").read_text())["models"]
    assert set(models[0]["by_length"]) == {"1-10", "11-20", "21-30"}
    capsys.readouterr()
    compare(["base.toml", "train.steps=4"], sweep=["model.score=dot,location"])
    assert f"{place}: resumed after step 3; 1 more step follows" in capsys.readouterr().err
    assert [e["kind"] for e in read_log(place)] == ["step", "step", "dev", "step", "step", "dev"]


def test_a_model_without_attention_has_no_map(folder: Path, capsys):
    (folder / "plain.toml").write_text(CONFIG.replace('"luong"', '"encdec"'))
    compare(["plain.toml"], report_folder=Path("other"), show_attention=True)
    shown = capsys.readouterr().out
    assert " - " in shown.splitlines()[1]
    assert {path.name for path in Path("other").iterdir()} == FILES | {"length.png", "learning.png"}
    assert json.loads(Path("other/report.json").read_text())["models"][0]["aer"] is None


def test_ctrl_c_keeps_what_there_is(undrawn: Path, monkeypatch, capsys):
    names = []

    def train_until_stopped(name, settings, folder):
        names.append(name)
        return None if len(names) < 2 else signal.SIGINT

    monkeypatch.setattr(module, "train_model", train_until_stopped)
    with pytest.raises(typer.Exit) as stop:
        compare(["base.toml"], sweep=["model.score=dot,location"])
    assert stop.value.exit_code == 130
    shown = capsys.readouterr().out
    assert "base,score=location: stopped; give the same command" in shown
    assert [row["name"] for row in table(undrawn)] == ["score=dot"]


def test_gold_of_a_file(undrawn: Path):
    record = next(Run.load("runs/base,score=dot").corpus().read("test"))
    Path("pairs.txt").write_text(f"{record['source']} ||| {record['target']}\n")
    Path("gold.txt").write_text(record["links"] + "\n")
    truth = gold_from_files(Path("gold.txt"), Path("pairs.txt"))
    assert truth == gold_from_records([record])._replace(records=truth.records)
    compare(
        ["base.toml"],
        sweep=["model.score=dot,location"],
        gold=Path("gold.txt"),
        pairs=Path("pairs.txt"),
    )
    run = Run.load("runs/base,score=dot")
    (links,) = looked_up(run, [record])
    sure = truth.gold[0].sure
    wanted = 1 - 2 * len(links & sure) / (len(links) + len(sure))
    assert float(table(undrawn)[0]["aer"]) == pytest.approx(wanted)
    Path("pairs.txt").write_text("a b c\n")
    with pytest.raises(ValueError, match=r"pairs\.txt:1: "):
        gold_from_files(Path("gold.txt"), Path("pairs.txt"))
    Path("pairs.tsv").write_text("a\tb\nc\td\n")
    with pytest.raises(ValueError, match=r"gold\.txt"):
        gold_from_files(Path("gold.txt"), Path("pairs.tsv"))
    with pytest.raises(ValueError, match="--gold and --pairs belong together"):
        compare(["base.toml"], gold=Path("gold.txt"))


def test_the_tokenizer_of_bleu_is_a_setting(undrawn: Path):
    """A trained run is scored anew by it, not trained again."""
    log = Path("runs/base,score=dot/log.jsonl")
    before = log.read_bytes()
    compare(["base.toml", "metrics.tokenize=none"], sweep=["model.score=dot,location"])
    assert log.read_bytes() == before
    assert "BLEU: nrefs:1|case:mixed|eff:no|tok:none" in Path("runs/report/report.md").read_text()


def test_names_say_what_differs():
    assert short_name("base,score=dot", ["base,score=dot", "base"]) == "score=dot"
    assert short_name("base", ["base,score=dot", "base"]) == "base"
    assert short_name("base,score=dot", ["base,score=dot", "other"]) == "base,score=dot"


def test_wrong_words(folder: Path):
    with pytest.raises(ValueError, match="models are compared on the same data"):
        compare(["base.toml"], sweep=["data.size=5,6"])
    with pytest.raises(ValueError, match=r"base,kind=rnnsearch,score=dot: score 'dot' needs a que"):
        compare(["base.toml"], sweep=["model.kind=luong,rnnsearch", "model.score=general,dot"])
    assert not Path("runs/base,kind=luong,score=general").exists()
    with pytest.raises(ValueError, match="did you mean 'test'"):
        compare(["base.toml"], split="tset")
