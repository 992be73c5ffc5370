"""Naming words: how sentences are laid out, and runs from data to entities, slots and intents."""

import random

import pytest
import torch

from regard.config.load import resolve
from regard.data.build import build_corpus
from regard.data.tag_schemes import find_violation, spans_from_tags
from regard.models.catalogue import MODELS
from regard.tasks.tag_inputs import (
    SubwordInputs,
    WordAndCharacterInputs,
    WordCharacterInputs,
    word_states,
)
from regard.text.special import END, START, UNKNOWN
from regard.text.train import train_tokenizer
from regard.train.run import build_run
from regard.train.tag import TagRun, UnderstandRun
from regard.training.trainer import Trainer

KINDS = [kind for kind, entry in MODELS.items() if "tag" in entry.tasks]
SMALL = {
    "birnn": {"dim": 12, "hidden_dim": 8},
    "birnn_attention": {"dim": 12, "hidden_dim": 8, "dropout": 0.0},
    "bilstm_crf": {"dim": 12, "hidden_dim": 8, "dropout": 0.0},
    "bert": {"dim": 16, "heads": 2, "layers": 1, "max_positions": 20, "dropout": 0.0},
    "elmo": {"filters": ((1, 8), (2, 8)), "dim": 12, "hidden_dim": 16, "dropout": 0.0},
}
PLACES, PEOPLE = ["rome", "oslo", "new york"], ["ada", "bob", "al ray"]


def sentence(draw: random.Random) -> tuple[str, str, str]:
    """A made-up wish, its slots, and what it is: words, tags, intent."""
    words, tags = [], []

    def say(text: str, name: str = "") -> None:
        for number, word in enumerate(text.split()):
            words.append(word)
            tags.append(f"{'BI'[number > 0]}-{name}" if name else "O")

    fly = draw.random() < 0.5
    say(draw.choice(["i want to", "please", ""]))
    say("fly to" if fly else "call")
    say(draw.choice(PLACES if fly else PEOPLE), "to" if fly else "who")
    if fly and draw.random() < 0.5:
        say("from")
        say(draw.choice(PLACES), "from")
    return " ".join(words), " ".join(tags), "fly" if fly else "call"


def settings(folder, task: str, kind: str, steps: int | None = None, **more):
    draw = random.Random(0)
    for split, count in (("train", 120), ("dev", 20), ("test", 40)):
        rows = [sentence(draw) for _ in range(count)]
        (folder / split).mkdir(exist_ok=True)
        for name, column in (("seq.in", 0), ("seq.out", 1), ("label", 2)):
            text = "".join(f"{row[column]}\n" for row in rows)
            (folder / split / name).write_text(text)
    files = {split: str(folder / split) for split in ("train", "dev", "test")}
    return resolve(
        {
            "task": task,
            "data": {"kind": "tagged", **files},
            "text": {"kind": "words"},
            "model": {"kind": kind, **SMALL[kind]},
            "train": {
                "steps": steps or (60 if "birnn" in kind else 120),
                "examples_per_batch": 16,
                "learning_rate": 0.02 if "birnn" in kind else 0.008,
                "validate_every": 30,
                "save_every": 30,
                "metric": "f1" if task == "tag" else "sentence",
            },
            **more,
        }
    )


@pytest.mark.usefixtures("unchecked")  # the shapes are checked below
@pytest.mark.parametrize("kind", KINDS)
def test_from_data_to_entities(tmp_path, kind):
    list(Trainer(settings(tmp_path, "tag", kind), tmp_path / "run", lambda _: None).events())
    run = TagRun.load(tmp_path / "run")
    scores = run.score(run.corpus().read("test"))
    assert scores["f1"] > 95
    assert scores["sentences"] == 40
    [reply] = run.predict_lines(["fly to new york from oslo"])
    assert reply.text == "fly to [new york](to) from [oslo](from)"
    assert reply.data["spans"][0] == {"label": "to", "start": 2, "end": 4, "text": "new york"}
    assert run.predict_lines([""])[0].text == ""
    long = run(" ".join(["fly to rome"] * 40))
    assert len(long.tags) == len(long.words) == 120


@pytest.mark.usefixtures("unchecked")  # the shapes are checked below
@pytest.mark.parametrize("kind", KINDS)
def test_slots_and_intents(tmp_path, kind):
    list(Trainer(settings(tmp_path, "understand", kind), tmp_path / "run", lambda _: None).events())
    run = UnderstandRun.load(tmp_path / "run")
    scores = run.score(run.corpus().read("test"))
    assert scores["slot_f1"] > 95
    assert scores["intent"] == 100
    assert 90 < scores["sentence"] <= scores["intent"]
    [reply] = run.predict_lines(["please call al ray"])
    assert reply.text == "call: please call [al ray](who)"
    assert reply.data["intent"] == "call"
    assert 0.5 < reply.data["probability"] <= 1


@pytest.mark.parametrize("kind", KINDS)
def test_an_answer_depends_on_its_text_alone(tmp_path, kind):
    wanted = settings(tmp_path, "understand", kind)
    run = build_run(wanted, build_corpus(wanted.data))
    for weight in run.model.parameters():
        torch.nn.init.normal_(weight, std=0.5)
    texts = ["", "fly", "fly to new york from oslo", "please call al ray", "x y z"]
    together = run.predict(texts)
    for text, one in zip(texts, together, strict=True):
        [alone] = run.predict([text])
        assert alone.tags == one.tags
        assert alone.probability == pytest.approx(one.probability, abs=1e-6)


@pytest.mark.parametrize("scheme", ["bio", "bioes"])
def test_with_a_crf_no_row_of_tags_is_broken(tmp_path, scheme):
    """Of a model of random weights, which wants anything."""
    found = {}
    for crf in (True, False):
        head = {"crf": crf, "scheme": scheme}
        wanted = settings(tmp_path, "tag", "birnn", head=head)
        run = build_run(wanted, build_corpus(wanted.data))
        for weight in run.model.parameters():
            torch.nn.init.normal_(weight, std=1.0)
        draw = random.Random(1)
        texts = [" ".join(sentence(draw)[0].split() * 2) for _ in range(50)]
        batch = run.task.collate(
            [*run.task.examples({"text": text, "tags": "O " * 40} for text in texts)]
        )
        read = run.model.eval()(batch.inputs)
        rows = run.model.best_tags(read).tolist()
        names = run.task.tags.names
        tags = [
            [names[n] for n in row[: int(there.sum())]]
            for row, there in zip(rows, read.valid, strict=True)
        ]
        found[crf] = sum(find_violation(row, scheme) is not None for row in tags)
    assert found[True] == 0
    assert found[False] > 10  # what it would be without


def test_what_training_has_not_seen_is_no_error(tmp_path):
    wanted = settings(tmp_path, "understand", "birnn", steps=2)
    (tmp_path / "dev" / "seq.in").write_text("fly to mars\n")
    (tmp_path / "dev" / "seq.out").write_text("O O B-planet\n")
    (tmp_path / "dev" / "label").write_text("wish\n")
    fit = Trainer(wanted, tmp_path / "run", lambda _: None)
    list(fit.events())
    scores = fit.run.score(fit.run.corpus().read("dev"))
    assert scores["intent"] == 0
    assert scores["slot_recall"] == 0


def test_of_several_intents_any_is_right(tmp_path):
    """`a#b`: a is taught."""
    wanted = settings(tmp_path, "understand", "birnn", steps=2)
    labels = (tmp_path / "train" / "label").read_text().split()
    (tmp_path / "train" / "label").write_text("\n".join(f"{one}#other" for one in labels) + "\n")
    fit = Trainer(wanted, tmp_path / "run", lambda _: None)
    assert fit.run.vocabularies["labels"].names == sorted(set(labels))
    records = list(fit.run.corpus().read("dev"))
    found = fit.run.predict([one["text"] for one in records])
    for true, share in (("other#{}", 100), ("other", 0)):
        given = [
            {**one, "label": true.format(mine.label)}
            for one, mine in zip(records, found, strict=True)
        ]
        assert fit.run.prediction_metrics(given, found)["intent"] == share


class TestWords:
    TEXT = train_tokenizer("wordpiece", ["playing play ing chess"] * 5, 60)

    def test_pieces(self):
        words = SubwordInputs(self.TEXT, START, END)
        row = words.row(["playing", "chess"], 20)
        assert words.word_count(row) == 2
        assert row[0] == ~START
        assert row[-1] == ~END
        found = words.tensors([row, words.row(["play"], 20)])
        assert (found["ids"] >= 0).all()
        assert found["begins"].sum(1).tolist() == [2, 1]
        assert not (found["begins"] & ~found["valid"]).any()

    def test_a_word_is_not_cut(self):
        words = SubwordInputs(self.TEXT)
        whole = words.row(["chess", "playing"], 99)
        assert words.word_count(words.row(["chess", "playing"], len(whole) - 1)) == 1

    def test_a_word_of_nothing(self):
        words = SubwordInputs(self.TEXT)
        assert words.row([], 9) == [~UNKNOWN]
        assert words.word_count(words.row([], 9)) == 0

    def test_letters_and_both(self):
        text = train_tokenizer("words", ["a b"], 20)
        assert WordCharacterInputs(text).word_count(WordCharacterInputs(text).row([], 5)) == 0
        found = WordAndCharacterInputs(text).tensors([["a", "zz"], ["b"]])
        assert found["ids"][0, 1] == UNKNOWN
        assert found["valid"].tolist() == [[True, True], [True, False]]
        assert found["characters"].shape == (2, 2, 50)

    def test_at_words(self):
        states = torch.arange(10.0).view(2, 5, 1)
        begins = torch.tensor([[False, True, False, True, True], [True, False, False, False, True]])
        found, valid = word_states(states, begins)
        assert found[0, :, 0].tolist() == [1, 3, 4]
        assert found[1, :2, 0].tolist() == [5, 9]
        assert valid.tolist() == [[True] * 3, [True, True, False]]


def test_spans_are_those_of_the_tags(tmp_path):
    wanted = settings(tmp_path, "tag", "birnn", head={"scheme": "bioes"})
    run = build_run(wanted, build_corpus(wanted.data))
    for one in run.predict(["fly to new york", "call bob"]):
        assert one.spans == spans_from_tags(one.tags)
        assert find_violation(one.tags) is None
