"""Tagging and understanding: inputs of words, and runs from data to spans and intents."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from jaxtyping import config as jaxtyping_config

from regard.data.build import build_corpus
from regard.data.tag_schemes import find_violation, spans_from_tags
from regard.run import Run
from regard.tasks.catalogue import model_kinds
from regard.tasks.load import resolve_settings
from regard.tasks.tag.inputs import (
    SubwordInputs,
    WordAndCharacterInputs,
    WordCharacterInputs,
    word_states,
)
from regard.text.special import END, START, UNKNOWN
from regard.text.train import train_tokenizer
from regard.training.trainer import Trainer
from regard.view.terminal import Surface

KINDS = [*model_kinds("tag")]
SMALL = {
    "birnn": {"dim": 12, "hidden_dim": 8},
    "birnn_attention": {"dim": 12, "hidden_dim": 8, "dropout": 0.0},
    "bilstm_crf": {"dim": 12, "hidden_dim": 8, "dropout": 0.0},
    "bert": {"dim": 16, "heads": 2, "layers": 1, "max_positions": 20, "dropout": 0.0},
    "elmo": {"filters": ((1, 8), (2, 8)), "dim": 12, "hidden_dim": 16, "dropout": 0.0},
}
PLACES, PEOPLE = ["rome", "oslo", "new york"], ["ada", "bob", "al ray"]


def random_request(rng: random.Random) -> tuple[str, str, str]:
    """Return a random request: its words, tags and intent."""
    words, tags = [], []

    def add(text: str, slot: str = "") -> None:
        for position, word in enumerate(text.split()):
            words.append(word)
            tags.append(f"{'BI'[position > 0]}-{slot}" if slot else "O")

    is_flight = rng.random() < 0.5
    add(rng.choice(["i want to", "please", ""]))
    add("fly to" if is_flight else "call")
    add(rng.choice(PLACES if is_flight else PEOPLE), "to" if is_flight else "who")
    if is_flight and rng.random() < 0.5:
        add("from")
        add(rng.choice(PLACES), "from")
    return " ".join(words), " ".join(tags), "fly" if is_flight else "call"


def tag_settings(folder: Path, task: str, kind: str, steps: int | None = None, **tables) -> Any:
    rng = random.Random(0)
    for split, count in (("train", 120), ("dev", 20), ("test", 40)):
        rows = [random_request(rng) for _ in range(count)]
        (folder / split).mkdir(exist_ok=True)
        for name, column in (("seq.in", 0), ("seq.out", 1), ("label", 2)):
            text = "".join(f"{row[column]}\n" for row in rows)
            (folder / split / name).write_text(text)
    files = {split: str(folder / split) for split in ("train", "dev", "test")}
    return resolve_settings(
        {
            "task": task,
            "data": {"kind": "tagged", **files},
            "text": {"kind": "words"},
            "model": {"kind": kind, **SMALL[kind]},
            "train": {
                "steps": steps or (60 if "birnn" in kind else 120),
                "examples_per_batch": 16,
                "learning_rate": 0.02 if "birnn" in kind else 0.008,
                "validate_every": 60,
                "save_every": 200,
                "metric": "f1" if task == "tag" else "sentence_accuracy",
            },
            **tables,
        }
    )


def random_run(folder: Path, task: str, kind: str, std: float = 0.5, **tables) -> Run:
    """Return a run with large random weights."""
    config = tag_settings(folder, task, kind, **tables)
    run = Run.create(config, build_corpus(config.data))
    for weight in run.model.parameters():
        torch.nn.init.normal_(weight, std=std)
    return run


@contextmanager
def unchecked_shapes() -> Iterator[None]:
    """Turn off the checks of shapes, which would double the time of a training."""
    before = jaxtyping_config.jaxtyping_disable
    jaxtyping_config.update("jaxtyping_disable", True)
    try:
        yield
    finally:
        jaxtyping_config.update("jaxtyping_disable", before)


def train_run(folder: Path, task: str, kind: str) -> Run:
    with unchecked_shapes():  # the tests below check them
        list(Trainer(tag_settings(folder, task, kind), folder / "run", lambda _: None))
    return Run.load(folder / "run")


@pytest.fixture(scope="module", params=KINDS)
def tag_run(request, tmp_path_factory) -> Run:
    return train_run(tmp_path_factory.mktemp("tag"), "tag", request.param)


@pytest.fixture(scope="module", params=KINDS)
def understand_run(request, tmp_path_factory) -> Run:
    return train_run(tmp_path_factory.mktemp("understand"), "understand", request.param)


def test_from_data_to_entities(tag_run):
    run, metrics = tag_run, tag_run.score("test")
    assert list(metrics) == [
        *("f1", "precision", "recall", "f1_from", "f1_to", "f1_who", "f1_signature"),
        *("loss", "sentences"),
    ]
    assert metrics["f1"] > 95
    assert metrics["sentences"] == 40
    prediction: Any = run("fly to new york from oslo")
    assert prediction.text == "fly to [new york](to) from [oslo](from)"
    span = prediction.as_dict()["spans"][0]
    assert 0.5 < span.pop("probability") <= 1
    assert span == {"label": "to", "start": 7, "end": 15, "text": "new york"}
    assert prediction.spans[2] == ("new york", "to")
    assert run("").text == ""
    long: Any = run(" ".join(["fly to rome"] * 40))
    assert len(long.tags) == len(long.words) == 120


def test_slots_and_intents(understand_run):
    run, metrics = understand_run, understand_run.score("test")
    assert list(metrics) == [
        *("slot_f1", "intent_accuracy", "sentence_accuracy", "slot_precision", "slot_recall"),
        *("slot_f1_signature", "loss", "sentences"),
    ]
    assert metrics["slot_f1"] > 95
    assert metrics["intent_accuracy"] == 100
    assert 90 < metrics["sentence_accuracy"] <= metrics["intent_accuracy"]
    prediction = run("please call al ray")
    assert prediction.text == "call: please call [al ray](who)"
    assert prediction.spans[0] == ("call:", "")
    assert list(prediction.as_dict()) == [
        *("tokens", "tags", "spans", "sentence", "intent", "probability")
    ]
    assert prediction.as_dict()["intent"] == "call"
    assert 0.5 < prediction.as_dict()["probability"] <= 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_prediction_depends_only_on_its_text(tmp_path, kind):
    run = random_run(tmp_path, "understand", kind)
    texts = ["", "fly", "fly to new york from oslo", "please call al ray", "x y z"]
    counts: list[int] = []
    for text, prediction in zip(texts, run.predict(texts, on_progress=counts.append), strict=True):
        alone: Any = run(text)
        together: Any = prediction
        assert alone.tags == together.tags
        assert alone.probability == pytest.approx(together.probability, abs=1e-5)  # float32
    assert sum(counts) == len(texts)
    assert run.predict([]) == []


@pytest.mark.parametrize("scheme", ["bio", "bioes"])
def test_a_crf_never_violates_its_scheme(tmp_path, scheme):
    """Count the rows of tags that violate the scheme, of a model with random weights."""
    violations = {}
    for crf in (True, False):
        head = {"crf": crf, "scheme": scheme}
        task: Any = random_run(tmp_path, "tag", "birnn", std=1.0, head=head).task
        rng = random.Random(1)
        texts = [" ".join(random_request(rng)[0].split() * 2) for _ in range(50)]
        batch = task.collate([*task.examples({"text": t, "tags": "O " * 40} for t in texts)])
        logits = task.model.eval()(batch.inputs)
        rows = task.model.best_tags(logits).tolist()
        tags = [
            [task.tags.names[n] for n in row[: int(valid.sum())]]
            for row, valid in zip(rows, logits.valid, strict=True)
        ]
        violations[crf] = sum(find_violation(row, scheme) is not None for row in tags)
    assert violations[True] == 0
    assert violations[False] > 10


def test_unknown_tags_and_labels_are_no_error(tmp_path):
    config = tag_settings(tmp_path, "understand", "birnn", steps=2)
    (tmp_path / "dev" / "seq.in").write_text("fly to mars\n")
    (tmp_path / "dev" / "seq.out").write_text("O O B-planet\n")
    (tmp_path / "dev" / "label").write_text("wish\n")
    trainer = Trainer(config, tmp_path / "run", lambda _: None)
    list(trainer)
    metrics = trainer.run.score("dev")
    assert metrics["intent_accuracy"] == 0
    assert metrics["slot_recall"] == 0


def test_any_of_several_intents_is_correct(tmp_path):
    """The model learns the first: a of `a#b`."""
    config = tag_settings(tmp_path, "understand", "birnn", steps=2)
    labels = (tmp_path / "train" / "label").read_text().split()
    (tmp_path / "train" / "label").write_text("\n".join(f"{name}#other" for name in labels) + "\n")
    run = Run.create(config, build_corpus(config.data))
    assert run.vocabularies["labels"].names == sorted(set(labels))
    records = run.read_split("dev")
    predictions: Any = run.predict(records)
    for label, expected in (("other#{}", 100), ("other", 0)):
        changed = [
            {**record, "label": label.format(prediction.label)}
            for record, prediction in zip(records, predictions, strict=True)
        ]
        assert run.task.metrics(changed, predictions)["intent_accuracy"] == expected


@pytest.mark.parametrize("task", ["tag", "understand"])
def test_examples_and_batches(tmp_path, task):
    """The length of a target includes the label, if there is one."""
    run = random_run(tmp_path, task, "bilstm_crf")
    tag_task: Any = run.task
    records = run.read_split("dev")
    examples = list(tag_task.examples(records))
    has_label = task == "understand"
    for record, example in zip(records, examples, strict=True):
        words = record["text"].split()
        assert list(example.row) == words
        assert len(example.tags) == len(words)
        assert example.lengths == (len(words), len(words) + has_label)
    batch = tag_task.collate(examples)
    assert batch.indices.tolist() == list(range(len(records)))
    assert batch.tags.shape == batch.inputs["ids"].shape
    assert bool((batch.labels >= 0).all()) == has_label


def check_attention(run: Run) -> None:
    record = run.task.parse("fly to oslo", "input")
    assert record == {"text": "fly to oslo"}
    if not run.task.has_attention():
        with pytest.raises(ValueError, match="has no attention"):
            run.task.render(record, Surface())
        return
    assert run.task.render(record, Surface()).startswith(run(record).text)
    attention = run.attention(record)
    assert attention.title == "fly to oslo"
    tokens = ("fly", "to", "oslo")
    is_bert = run.settings.model.kind == "bert"
    assert attention.keys.tokens == (("<s>", *tokens, "</s>") if is_bert else tokens)


def test_attention_of_tags(tag_run):
    check_attention(tag_run)


def test_attention_of_slots(understand_run):
    check_attention(understand_run)


class TestWordInputs:
    TEXT = train_tokenizer("wordpiece", ["playing play ing chess"] * 5, 60)

    def test_subwords(self):
        words = SubwordInputs(self.TEXT, START, END)
        row = words.row(["playing", "chess"], 20)
        assert words.word_count(row) == 2
        assert row[0] == ~START
        assert row[-1] == ~END
        inputs = words.tensors([row, words.row(["play"], 20)])
        assert (inputs["ids"] >= 0).all()
        assert inputs["begins"].sum(1).tolist() == [2, 1]
        assert not (inputs["begins"] & ~inputs["valid"]).any()

    def test_a_word_is_never_truncated(self):
        words = SubwordInputs(self.TEXT)
        row = words.row(["chess", "playing"], 99)
        assert words.word_count(words.row(["chess", "playing"], len(row) - 1)) == 1

    def test_no_words(self):
        words = SubwordInputs(self.TEXT)
        assert words.row([], 9) == [~UNKNOWN]
        assert words.word_count(words.row([], 9)) == 0

    def test_characters(self):
        text = train_tokenizer("words", ["a b"], 20)
        assert WordCharacterInputs(text).word_count(WordCharacterInputs(text).row([], 5)) == 0
        inputs = WordAndCharacterInputs(text).tensors([["a", "zz"], ["b"]])
        assert inputs["ids"][0, 1] == UNKNOWN
        assert inputs["valid"].tolist() == [[True, True], [True, False]]
        assert inputs["characters"].shape == (2, 2, 50)

    def test_states_at_words(self):
        states = torch.arange(10.0).view(2, 5, 1)
        begins = torch.tensor([[False, True, False, True, True], [True, False, False, False, True]])
        gathered, valid = word_states(states, begins)
        assert gathered[0, :, 0].tolist() == [1, 3, 4]
        assert gathered[1, :2, 0].tolist() == [5, 9]
        assert valid.tolist() == [[True] * 3, [True, True, False]]


def test_spans_are_those_of_the_tags(tmp_path):
    run = random_run(tmp_path, "tag", "birnn", head={"scheme": "bioes"})
    predictions: Any = run.predict(["fly to new york", "call bob"])
    for prediction in predictions:
        assert prediction.tag_spans == spans_from_tags(prediction.tags)
        assert find_violation(prediction.tags) is None
