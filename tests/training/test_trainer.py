"""From settings to a run in a folder: stopped anywhere, it ends with the same weights."""

import csv
import json
import math
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch

from regard.config.settings import Settings
from regard.run import Run
from regard.tasks.load import parse_settings
from regard.training.trainer import Trainer, Validation

SMALL = """
[data]
kind = "dates"
size = 300
held_out = 20
languages = ["en", "de"]
[text]
kind = "characters"
[model]
kind = "{kind}"
dim = 16
dropout = 0.1
[train]
steps = 12
examples_per_batch = 16
validate_every = 4
save_every = 3
keep_checkpoints = 2
keep_finished = true
{more}
[decode]
kind = "greedy"
"""


def settings(kind: str = "rnnsearch", more: str = "") -> Settings:
    return parse_settings(SMALL.format(kind=kind, more=more))


def silent(line: str) -> None:
    raise AssertionError(line)


@pytest.mark.parametrize(
    ("stop", "kind"),
    [
        (0, "transformer"),
        (2, "rnnsearch"),
        (5, "transformer"),
        (11, "rnnsearch"),
        pytest.param(0, "rnnsearch", marks=pytest.mark.full),
        pytest.param(11, "transformer", marks=pytest.mark.full),
    ],
)
def test_stopped_and_taken_up_again(tmp_path: Path, kind: str, stop: int):
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    events = list(Trainer(settings(kind), whole, silent))
    assert sum(isinstance(event, Validation) for event in events) == 3
    torch.manual_seed(7)
    for number, _ in enumerate(Trainer(settings(kind), parts, silent), 1):
        if number > stop:
            break
    torch.manual_seed(8)
    list(Trainer(settings(kind), parts, silent))
    for name in ("weights.safetensors", "config.toml", "source.json"):
        assert (whole / name).read_bytes() == (parts / name).read_bytes(), name
    last = "checkpoints/step-00000012/weights.safetensors"
    assert (whole / last).read_bytes() == (parts / last).read_bytes()
    texts = [(folder / "log.jsonl").read_text() for folder in (whole, parts)]
    logs = [[json.loads(line) for line in text.splitlines()] for text in texts]
    for one, other in zip(*logs, strict=True):
        one.pop("seconds", None), other.pop("seconds", None)
        assert one == other
    sheets = [(folder / "log.csv").read_text().splitlines() for folder in (whole, parts)]
    sheets = [list(csv.DictReader(lines)) for lines in sheets]
    assert len(sheets[0]) == len(logs[0]) == 15
    for one, other in zip(*sheets, strict=True):
        assert {**one, "seconds": ""} == {**other, "seconds": ""}


def test_a_run_folder_is_all_that_is_needed(tmp_path: Path):
    list(Trainer(settings(), tmp_path / "run", silent))
    (tmp_path / "run").rename(tmp_path / "moved")
    run = Run.load(tmp_path / "moved")
    records = list(run.corpus().read("test"))
    scores = run.score(records)
    assert scores["sentences"] == 20
    assert 1 < float(scores["perplexity"]) < 20
    assert str(scores["bleu_signature"]).startswith("nrefs:1")
    best = run(records[0]).best
    looked = run.task.alignment(records[0]["source"], best.ids)
    assert looked.weights.shape == (len(looked.target), len(looked.source))
    assert looked.target[-1] == looked.source[-1] == "</s>"
    torch.testing.assert_close(looked.weights.sum(-1), torch.ones(len(looked.target)))


def test_what_is_too_long_for_the_perplexity_is_told(tmp_path: Path):
    list(Trainer(settings(), tmp_path, silent))
    run = Run.load(tmp_path)
    short, long = {"source": "1", "target": "1"}, {"source": "1", "target": "1" * 300}
    assert "not_in_perplexity" not in run.score([short])
    assert run.score([short, long])["not_in_perplexity"] == 1
    with pytest.raises(ValueError, match="no pair has at most 256 tokens on each side"):
        run.score([long])


def test_a_run_may_be_trained_longer_but_not_otherwise(tmp_path: Path):
    list(Trainer(settings(), tmp_path, silent))
    longer = settings().model_copy(
        update={"train": settings().train.model_copy(update={"steps": 14})}
    )
    assert len(list(Trainer(longer, tmp_path, silent))) == 2
    with pytest.raises(ValueError, match="holds a run with other settings") as caught:
        Trainer(settings(more="learning_rate = 0.5\nmax_tokens = 9"), tmp_path)
    assert "train.max_tokens: 256 -> 9, train.learning_rate: 0.001 -> 0.5" in str(caught.value)


def test_a_finished_run_keeps_its_weights_only(tmp_path: Path):
    given = parse_settings(SMALL.format(kind="rnnsearch", more=""), ["train.keep_finished=false"])
    list(Trainer(given, tmp_path, silent))
    weights = (tmp_path / "weights.safetensors").read_bytes()
    assert list((tmp_path / "checkpoints").iterdir()) == []
    assert list(Trainer(given, tmp_path, silent)) == []  # it is finished
    assert (tmp_path / "weights.safetensors").read_bytes() == weights


def test_a_finished_run_can_be_trained_further(tmp_path: Path):
    text, messages = SMALL.format(kind="rnnsearch", more="ema = 0.9"), list[str]()
    given = parse_settings(text, ["train.keep_finished=false"])
    list(Trainer(given, tmp_path, silent))
    longer = parse_settings(text, ["train.keep_finished=false", "train.steps=15"])
    trainer = Trainer(longer, tmp_path, messages.append)
    assert "with a new optimizer, so not exactly" in messages[0]
    first = next(iter(trainer))
    assert first.number == 13
    steps = [
        event.number for event in Trainer(longer, tmp_path, silent) if hasattr(event, "number")
    ]
    assert steps == [13, 14, 15]  # from the checkpoint after step 12
    assert list((tmp_path / "checkpoints").iterdir()) == []


def test_a_damaged_checkpoint_is_told_and_passed_over(tmp_path: Path):
    list(Trainer(settings(), tmp_path, silent))
    weights = tmp_path / "checkpoints/step-00000012/weights.safetensors"
    data = bytearray(weights.read_bytes())
    data[-1] ^= 1
    weights.write_bytes(data)
    said: list[str] = []
    fit = Trainer(settings(), tmp_path, said.append)
    assert fit.training.steps_done == 9
    assert len(said) == 1
    assert "weights.safetensors: checksum differs from manifest.json" in said[0]


def test_what_is_validated_is_what_is_kept(tmp_path: Path):
    """With averaged weights: the loss that is told is that of the weights in the folder."""
    fit = Trainer(settings(more="ema = 0.9"), tmp_path, silent)
    seen = [event for event in fit if isinstance(event, Validation)]
    best = min(seen, key=lambda event: event.loss)
    run = Run.load(tmp_path)
    loss = run.task.negative_log_likelihood(run.read_split("dev"))
    assert loss.total.item() / loss.count == pytest.approx(best.loss, rel=1e-6)


@pytest.mark.parametrize("steps", [0, 8])
def test_scheduled_sampling(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: int):
    more = f"teacher_forcing = 0.5\nteacher_forcing_steps = {steps}"
    fit, rates = Trainer(settings(more=more), tmp_path, silent), list[float]()
    task: Any = fit.run.task
    forcing_rate = task.teacher_forcing_rate

    def listen(step: int) -> float:
        rates.append(forcing_rate(step))
        return rates[-1]

    monkeypatch.setattr(task, "teacher_forcing_rate", listen)
    monkeypatch.setattr(fit, "validate", lambda: Validation(0, 0.0, 0.0, False))
    list(fit)
    falling = [1 - 0.5 * min(step / 8, 1) for step in range(12)]
    assert rates == pytest.approx(falling if steps else [0.5] * 12)


def test_averages_and_patience(tmp_path: Path):
    list(Trainer(settings(more="average_checkpoints = 2\nema = 0.9"), tmp_path / "a", silent))
    assert Run.load(tmp_path / "a").model is not None
    more = 'patience = 1\nlearning_rate = 1e-9\nmetric = "exact"'
    events = list(Trainer(settings(more=more), tmp_path / "b", silent))
    assert events[-1] == Validation(8, events[-1].loss, 0.0, False)


def test_ties_of_the_metric_are_broken_by_the_loss(tmp_path: Path, monkeypatch):
    """F1 stuck at 0.00: the weights with the lowest loss are kept; patience waits for the F1."""
    results = iter([(3.0, 0.0), (2.0, 0.0), (2.5, 0.0)])
    trainer = Trainer(settings(more='metric = "exact"\npatience = 2'), tmp_path, silent)
    monkeypatch.setattr(trainer, "compute_loss_and_metric", lambda: next(results))
    kept, events = [], []
    for event in trainer:
        if isinstance(event, Validation):
            events.append((event.step, event.best))
            kept.append((tmp_path / "weights.safetensors").read_bytes())
    assert events == [(4, True), (8, True), (12, False)]
    assert kept[0] != kept[1] == kept[2]


def test_a_metric_that_is_not_a_number_is_never_the_best(tmp_path: Path, monkeypatch):
    results = iter([(math.nan, math.nan), (2.0, 2.0), (3.0, 3.0)])
    trainer = Trainer(settings(), tmp_path, silent)
    monkeypatch.setattr(trainer, "compute_loss_and_metric", lambda: next(results))
    events = [event.best for event in trainer if isinstance(event, Validation)]
    assert events == [False, True, False]


@pytest.mark.parametrize(
    ("name", "damage", "says"),
    [
        ("weights.safetensors", lambda p: p.unlink(), "the run has no weights"),
        ("weights.safetensors", lambda p: p.write_bytes(b"abc"), "has 3 bytes, but"),
        ("source.json", lambda p: p.write_text("{"), "has 1 bytes, but"),
    ],
)
def test_a_damaged_run(tmp_path: Path, name: str, damage, says: str):
    list(Trainer(settings(), tmp_path, silent))
    damage(tmp_path / name)
    with pytest.raises(ValueError, match=says):
        Run.load(tmp_path)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.filterwarnings("ignore:The .grad attribute")  # which the compiler itself hides
@pytest.mark.full  # the compiler takes half a minute; layers/test_compiled.py compiles less
def test_compiled_it_learns_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The compiler's front alone: it traces as it would, and leaves the code to torch."""
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="aot_eager"))
    short = ["train.steps=3", "train.validate_every=2", "model.dropout=0", "model.layers=1"]
    text = SMALL.format(kind="transformer", more="")
    plain, compiled = (
        list(Trainer(parse_settings(text, [*short, f"train.compile={on}"]), tmp_path / on, silent))
        for on in ("false", "true")
    )
    assert [e.loss for e in compiled] == pytest.approx([e.loss for e in plain], rel=1e-4)
    torch.compiler.reset()  # else what was passed over here is passed over in other tests, too


def test_recurrent_models_are_not_compiled():
    with pytest.raises(ValueError, match=r"train\.compile is for the transformer"):
        settings(more="compile = true")


def lines_of(path: Path, change: int = 0) -> str:
    """A file that links the first word of each date, and the setting that names it."""
    path.write_text("0-0\n" * (300 + change))
    return f'alignments = "{path}"'


def test_guided_alignment(tmp_path: Path, unchecked: None):
    """It changes what is learned, and goes on bit for bit; with weight 0 it changes nothing."""
    named = lines_of(tmp_path / "links")
    runs = {"without": "", "nothing": named, "whole": f"{named}\nguided_alignment_weight = 0.5"}
    for name, more in runs.items():
        list(Trainer(settings("transformer", more), tmp_path / name, silent))
    taught = settings("transformer", runs["whole"])
    for _ in islice(Trainer(taught, tmp_path / "parts", silent), 6):
        pass
    torch.manual_seed(8)
    list(Trainer(taught, tmp_path / "parts", silent))
    weights = {
        name: (tmp_path / name / "checkpoints/step-00000012/weights.safetensors").read_bytes()
        for name in (*runs, "parts")
    }
    assert weights["without"] == weights["nothing"] != weights["whole"] == weights["parts"]


def test_alignments_that_do_not_fit(tmp_path: Path):
    more = f"guided_alignment_weight = 1.0\n{lines_of(tmp_path / 'links', -1)}"
    with pytest.raises(ValueError, match=r"links has 299 lines, but the training data 300 pairs"):
        Trainer(settings(more=more), tmp_path / "run")
    with pytest.raises(ValueError, match="has no attention to the source"):
        Trainer(settings("encdec", more), tmp_path / "other")
