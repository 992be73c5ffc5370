"""Classification as a task: how texts are laid out, and runs from data to verdict."""

from pathlib import Path

import pytest
import torch

from regard.config.load import resolve
from regard.data.build import build_corpus
from regard.models.catalogue import MODELS
from regard.tasks.inputs import (
    BertInputs,
    PlainInputs,
    SentenceInputs,
    split_rows,
    truncate_pair,
)
from regard.text.special import END, START
from regard.text.train import train_tokenizer
from regard.train.classify import ClassifyRun
from regard.train.run import build_run
from regard.training.trainer import Trainer

KINDS = [kind for kind, entry in MODELS.items() if "classify" in entry.tasks]
SMALL = {
    "birnn": {"dim": 12, "hidden_dim": 8},
    "han": {"dim": 12, "hidden_dim": 8},
    "bert": {"dim": 16, "heads": 2, "layers": 1, "max_positions": 60, "dropout": 0.0},
    "elmo": {"filters": ((1, 8), (2, 8)), "dim": 12, "hidden_dim": 16, "dropout": 0.0},
}
GOOD, BAD = ["a fine film", "good and fine. very good"], ["a dull film", "bad! dull and bad"]
WORDS = train_tokenizer("words", [*GOOD, *BAD], 100)


class TestInputs:
    def test_plain(self):
        a, film = WORDS.encode_ids(["a", "film"])
        [row] = PlainInputs(WORDS).rows([{"text": "a film"}], 9)
        assert row == [*a, *film, END]
        [row] = PlainInputs(WORDS).rows([{"text": "a film", "pair": "film"}], 9)
        assert row == [*a, *film, END, *film, END]

    def test_marked(self):
        inputs = BertInputs(WORDS)
        rows = inputs.rows([{"text": "a film", "pair": "a"}, {"text": "a", "pair": "a film"}], 9)
        assert all(row[0] == START and row[-1] == END for row in rows)
        found = inputs.tensors([*rows, rows[0][:4]])
        assert found["segments"].tolist() == [
            [0, 0, 0, 0, 1, 1],
            [0, 0, 0, 1, 1, 1],
            [0, 0, 0, 0, 0, 0],
        ]
        assert found["valid"].sum(1).tolist() == [6, 6, 4]

    def test_by_sentence(self):
        inputs = SentenceInputs(WORDS)
        rows = inputs.rows([{"text": "a film. good"}, {"text": ""}], 99)
        assert [len(sentence) for sentence in split_rows(rows[0])] == [3, 2]
        found = inputs.tensors(rows)
        assert found["ids"].shape == (2, 2, 3)
        assert found["valid"].sum(-1).tolist() == [[3, 2], [1, 0]]
        [cut] = inputs.rows([{"text": "a film. good and fine"}], 5)
        assert len(cut) == 5
        assert cut[-1] == END

    @pytest.mark.parametrize(
        ("first", "second", "kept"),
        [(9, 2, (8, 2)), (2, 9, (2, 8)), (9, 9, (5, 5)), (3, 3, (3, 3))],
    )
    def test_the_longer_one_gives_way(self, first, second, kept):
        assert tuple(map(len, truncate_pair(range(first), range(second), 10))) == kept


def settings(tmp_path: Path, kind: str, steps: int = 40):
    lines = [f"{text}\t{label}\n" for label, texts in (("+", GOOD), ("-", BAD)) for text in texts]
    for name in ("train", "dev", "test"):
        (tmp_path / f"{name}.tsv").write_text("".join(lines * 4))
    files = {name: str(tmp_path / f"{name}.tsv") for name in ("train", "dev", "test")}
    return resolve(
        {
            "task": "classify",
            "data": {"kind": "labeled", **files},
            "text": {"kind": "words"},
            "model": {"kind": kind, **SMALL[kind]},
            "train": {
                "steps": steps,
                "examples_per_batch": 4,
                "learning_rate": 0.005 if kind == "bert" else 0.02,
                "validate_every": 20,
                "save_every": 15,
                "metric": "accuracy",
            },
        }
    )


@pytest.mark.parametrize("kind", KINDS)
def test_from_data_to_verdict(tmp_path, kind):
    list(Trainer(settings(tmp_path, kind), tmp_path / "run", lambda _: None).events())
    run = ClassifyRun.load(tmp_path / "run")
    scores = run.score(run.corpus().read("test"))
    assert scores["accuracy"] == scores["f1"] == 100.0
    assert scores["texts"] == 16
    assert run("fine film").label == "+"
    plus, minus = run.predict_lines(["good", "dull"])
    assert (plus.text, minus.text) == ("+", "-")
    assert sum(minus.data["probabilities"].values()) == pytest.approx(1)
    assert run.predict_lines([""])[0].text in "+-"  # nothing to read is no reason to fail


@pytest.mark.parametrize("kind", KINDS)
def test_a_verdict_depends_on_its_text_alone(tmp_path, kind):
    wanted = settings(tmp_path, kind)
    run = build_run(wanted, build_corpus(wanted.data))
    texts = [{"text": " ".join(GOOD + BAD)[:n]} for n in (0, 1, 9, 30, 50)]
    together = run.predict(texts)
    for text, one in zip(texts, together, strict=True):
        [alone] = run.predict([text])
        for label, p in one.probabilities.items():
            assert alone.probabilities[label] == pytest.approx(p, abs=1e-6)


def test_a_text_beyond_the_context_is_cut(tmp_path):
    wanted = settings(tmp_path, "bert")
    run = build_run(wanted, build_corpus(wanted.data))
    assert run.max_tokens == SMALL["bert"]["max_positions"] - 3
    long = " ".join(["fine"] * 99)
    for pair in (None, long):
        assert run(long, pair).label in "+-"
    assert run(long) == run(" ".join(["fine"] * run.max_tokens))


@pytest.mark.parametrize("kind", KINDS)
def test_weights_can_be_seen(tmp_path, kind):
    wanted = settings(tmp_path, kind)
    run = build_run(wanted, build_corpus(wanted.data))
    found = run.task.attention_weights({"text": "good and fine. very good"})
    assert found
    for weights in found.values():
        assert torch.allclose(weights.sum(-1), torch.ones(()), atol=1e-5)


def test_a_label_that_training_has_not(tmp_path):
    wanted = settings(tmp_path, "birnn")
    (tmp_path / "dev.tsv").write_text("a fine film\t+\nso so\t0\n")
    place = rf"{tmp_path}/dev.tsv:2: label '0' is not in the training data; there are \+, -"
    with pytest.raises(ValueError, match=place):
        Trainer(wanted, tmp_path / "run", lambda _: None)
