"""Answering: windows and places, and runs from questions to stretches of their contexts."""

import json
from typing import ClassVar

import pytest
import torch

from regard.config.load import resolve
from regard.data.build import build_corpus
from regard.data.synthetic.facts import Facts
from regard.models.catalogue import MODELS
from regard.tasks.answer import AnswerPrediction, gather_context, negative_log_prob
from regard.tasks.answer_inputs import (
    JoinedLayout,
    SeparateLayout,
    sliding_windows,
    split_words,
    token_span,
)
from regard.text.special import END, START, UNKNOWN
from regard.text.train import train_tokenizer
from regard.train.answer import AnswerRun
from regard.train.run import build_run
from regard.training.trainer import Trainer

KINDS = [kind for kind, entry in MODELS.items() if "answer" in entry.tasks]
SMALL = {
    "bidaf": {
        "dim": 32,
        "hidden_dim": 32,
        "character_output_dim": 8,
        "filters": ((3, 8),),
        "layers": 1,
        "dropout": 0.0,
    },
    "birnn": {"dim": 16, "hidden_dim": 8},
    "bert": {"dim": 16, "heads": 2, "layers": 1, "max_positions": 64, "dropout": 0.0},
}
EASY = {
    "entities": 3,
    "attributes": 1,
    "vocabulary_size": 20,
    "max_answer_words": 2,
    "new_names": 0.0,
}
CONTEXT = "Ada met Bob-Ray in Rome, in 1912."


def settings(kind: str, data=None, head=None, **train):
    return resolve(
        {
            "task": "answer",
            "data": {"kind": "facts", "size": 200, "held_out": 40, **(data or EASY)},
            "text": {"kind": "words", "lower": True},
            "model": {"kind": kind, **SMALL[kind]},
            "head": {"max_answer_tokens": 4, "dropout": 0.0, **(head or {})},
            "train": {"steps": 4, "examples_per_batch": 16, "max_tokens": 40, **train},
        }
    )


def random_run(kind: str, **more) -> AnswerRun:
    wanted = settings(kind, **more)
    run = build_run(wanted, build_corpus(wanted.data))
    for weight in run.model.parameters():
        torch.nn.init.normal_(weight, std=0.5)
    return run


@pytest.mark.usefixtures("unchecked")  # the shapes are checked below
def test_from_questions_to_answers(tmp_path):
    """Facts that one key tells apart; two take longer (docs/results.md)."""
    data = {**EASY, "size": 64 * 60}
    more = {"steps": 140, "learning_rate": 0.006, "validate_every": 140, "max_grad_norm": 5.0}
    more |= {"examples_per_batch": 64}
    wanted = settings("bidaf", data, **more)
    list(Trainer(wanted, tmp_path / "run", lambda _: None).events())
    run = AnswerRun.load(tmp_path / "run")
    scores = run.score(run.corpus().read("test"))
    assert scores["exact"] > 90
    assert scores["questions"] == 40
    record = next(run.corpus().read("test"))
    said = run(record["question"], record["text"])
    assert said.text == record["answers"][0]["text"]
    assert said.span.start == record["answers"][0]["start"]
    assert said.span.probability > 0.5


@pytest.mark.parametrize("kind", KINDS)
def test_an_answer_depends_on_its_text_alone(kind):
    run = random_run(kind)
    records = list(Facts(6, **{**EASY, "max_answer_words": 3}).read("train"))
    records += [{"question": "a ?", "text": "word"}, {"question": "?", "text": "x " * 90}]
    together = run.predict(records)
    for record, one in zip(records, together, strict=True):
        alone = run(record["question"], record["text"])
        assert alone.text == one.text
        assert alone.span.probability == pytest.approx(one.span.probability, abs=1e-5)
        for some in one.candidates:
            assert record["text"][some.start : some.end] == some.text
            assert len(some.text.split()) <= 4
        assert 0 < sum(some.probability for some in one.candidates) <= 1 + 1e-6


@pytest.mark.parametrize("kind", KINDS)
def test_all_that_may_be_said_sums_to_one(kind, monkeypatch):
    monkeypatch.setattr("regard.tasks.answer.MAX_CANDIDATES", 10_000)
    run = random_run(kind, head={"allow_no_answer": True})
    found = run("what is it ?", "one two three four .")
    assert len(found.candidates) == 5 + 4 + 3 + 2
    assert sum(
        one.probability for one in found.candidates
    ) + found.no_answer_probability == pytest.approx(1)


@pytest.mark.parametrize("kind", KINDS)
def test_training_and_loading(tmp_path, kind):
    fit = Trainer(settings(kind, validate_every=2), tmp_path / "run", lambda _: None)
    list(fit.events())
    run = AnswerRun.load(tmp_path / "run")
    loss = run.negative_log_likelihood(run.corpus().read("dev"))
    assert loss.count == 40
    assert set(run.score(run.corpus().read("dev"))) == {
        *("exact", "f1", "exact_signature", "loss", "questions")
    }


class TestWindows:
    def test_all_is_read(self):
        for count in range(1, 30):
            for room in range(1, 12):
                for stride in range(1, 14):
                    found = list(sliding_windows(count, room, stride))
                    assert {n for one in found for n in range(*one)} == set(range(count))
                    assert all(0 < last - first <= room for first, last in found)
        assert list(sliding_windows(5, 5, 2)) == [(0, 5)]
        assert list(sliding_windows(6, 4, 2)) == [(0, 4), (2, 6)]

    @pytest.mark.parametrize("kind", KINDS)
    def test_targets(self, kind):
        """The answer is where it is in each window that has it, and nowhere in the others."""
        run = random_run(kind, head={"stride": 5})
        [record] = Facts(1, **{**EASY, "entities": 6}).read("train")
        pairs = list(run.task.examples([record], 20))
        assert len(pairs) > 2
        words = record["answers"][0]["text"].split()
        found = 0
        for pair in pairs:
            begin, first, last = pair.target
            if first:
                row = pair.source[begin + first - 1 : begin + last]
                tokens = [run.vocabularies["text"].token(n) if kind != "bidaf" else n for n in row]
                assert tokens == words
                found += 1
            else:
                assert last == 0
        assert 0 < found < len(pairs)

    def test_the_best_of_all_windows(self):
        """Scores are against none at all, whatever else is in a window."""
        run = random_run("bidaf", head={"stride": 4, "max_answer_tokens": 1})
        places = [(n, n + 1) for n in range(9)]
        found = run.task.to_prediction("abcdefghi", places, {(1, 1): 2.0, (7, 7): 3.0}, [2.5, 3.1])
        assert found.text == "h"
        everything = torch.tensor([2.5, 3.1]).logsumexp(0)
        assert found.span.probability == pytest.approx((3.0 - everything).exp().item(), rel=1e-5)

    def test_an_answer_that_no_window_holds_is_left_out(self):
        run = random_run("bidaf", head={"stride": 2})
        record = {"question": "q ?", "text": "a b c d", "answers": [{"text": "a b c", "start": 0}]}
        assert list(run.task.examples([record], 2)) == []


class TestNoAnswer:
    DATA: ClassVar = {**EASY, "unanswerable": 0.5}

    def test_it_has_to_be_allowed(self, tmp_path):
        with pytest.raises(ValueError, match=r"has no answer; set head\.allow_no_answer = true"):
            Trainer(settings("bidaf", self.DATA), tmp_path / "run", lambda _: None)

    def test_the_threshold_is_kept(self, tmp_path):
        wanted = settings("bidaf", self.DATA, {"allow_no_answer": True}, validate_every=2, ema=0.9)
        fit = Trainer(wanted, tmp_path / "run", lambda _: None)
        list(fit.events())
        run = AnswerRun.load(tmp_path / "run")
        assert run.model.threshold.item() != 0
        scores = run.score(run.corpus().read("dev"))
        assert scores["f1"] == pytest.approx(fit.best_metric)
        assert {"exact_with_answer", "exact_without"} < set(scores)
        assert 0 < run("what is the home of x ?", "the home of y is z .").no_answer_probability < 1

    def test_below_the_threshold_nothing_is_said(self):
        run = random_run("bidaf", head={"allow_no_answer": True})
        run.model.threshold.fill_(1e9)
        assert run("a ?", "b c").span is None
        [reply] = run.predict_lines(["a ?\tb  c"])
        assert reply.text == "no answer: b c"
        assert reply.data["answer"] == ""
        assert reply.data["start"] is None
        run.model.threshold.fill_(-1e9)
        assert run("a ?", "b c").span is not None


class TestPlaces:
    def test_words_and_marks(self):
        found = split_words(CONTEXT)
        assert " ".join(found.tokens) == "Ada met Bob - Ray in Rome , in 1912 ."
        assert [CONTEXT[a:b] for a, b in found.offsets] == found.tokens

    @pytest.mark.parametrize("kind", ["wordpiece", "bpe", "byte_bpe", "unigram", "characters"])
    def test_pieces_know_where_they_stand(self, kind):
        text = "Zoë saw “Bob” in Curaçao."
        made = train_tokenizer(kind, [text, CONTEXT] * 3, 300, lower=True)
        layout = JoinedLayout(made, START, END, segments=True)
        [cut] = layout.tokenize([text])
        first, last = token_span(cut.offsets, text.index("Cura"), text.index("."))
        start, end = cut.offsets[first][0], cut.offsets[last][1]
        assert text[start:end].strip().startswith("Curaçao")

    def test_covered(self):
        places = [(0, 3), (4, 7), (7, 8)]
        assert token_span(places, 4, 8) == (1, 2)
        assert token_span(places, 5, 6) == (1, 1)  # a part of a word is the word
        assert token_span(places, 3, 4) is None

    def test_joined(self):
        text = train_tokenizer("words", ["a b c d"], 20)
        layout = JoinedLayout(text, START, END, segments=True, is_word_level=True)
        asked, context = layout.tokenize(["a b", "c zz d"])
        row = layout.row(asked.tokens, context.tokens)
        assert row[0] == START
        assert [row[3], row[-1]] == [END, END]
        assert row[5] == UNKNOWN
        found = layout.tensors([row, [*row[:-2], END]], [layout.context_start(asked.tokens)] * 2)
        assert found["counts"].tolist() == [3, 2]
        assert found["segments"].tolist() == [[0, 0, 0, 0, 1, 1, 1, 1], [0, 0, 0, 0, 1, 1, 1, 0]]

    def test_apart(self):
        layout = SeparateLayout(train_tokenizer("words", ["a b c d"], 20))
        found = layout.tensors([["a", "b", "zz"], ["c", "d"]], [2, 1])
        assert found["question_valid"].tolist() == [[True, True], [True, False]]
        assert found["ids"].tolist() == [[UNKNOWN], layout.text.encode_ids(["d"])[0]]
        assert found["characters"].shape == (2, 1, 50)

    def test_picked(self):
        energy = torch.arange(12.0).view(2, 6)
        found = gather_context(energy, torch.tensor([2, 3]), torch.tensor([3, 1]))
        inf = float("inf")
        assert found.tolist() == [[0, 2, 3, 4], [6, 9, -inf, -inf]]


def test_smoothing_is_over_what_is_there():
    energy = torch.tensor([[1.0, 2.0, -torch.inf], [0.5, 0.0, 1.0]])
    true = torch.tensor([1, 2])
    logs = [torch.tensor([1.0, 2.0]).log_softmax(0), torch.tensor([0.5, 0.0, 1.0]).log_softmax(0)]
    by_hand = sum(-0.9 * one[n] - 0.1 * one.mean() for one, n in zip(logs, (1, 2), strict=True))
    torch.testing.assert_close(negative_log_prob(energy, true, 0.1), by_hand)


class TestReplies:
    def test_the_answer_is_marked_in_its_context(self):
        run = random_run("birnn")
        [reply] = run.predict_lines([f"where ?\t{CONTEXT}"])
        said = reply.data["answer"]
        assert f"[{said}]" in reply.text
        assert reply.text.replace("[", "").replace("]", "") == CONTEXT
        assert CONTEXT[reply.data["start"] : reply.data["end"]] == said
        assert (said, "answer") in reply.spans
        assert len(reply.data["answers"]) == 5
        json.dumps(reply.data)

    @pytest.mark.parametrize(
        ("line", "why"),
        [
            ("where ?", "no tab in it"),
            ("\tcontext", "the question is empty"),
            ("where ? \t ", "the context is empty"),
            (f"{'so ' * 30}\tcontext", "the question has 30 tokens, more than 20: shorten it"),
        ],
    )
    def test_bad_lines(self, line, why):
        with pytest.raises(ValueError, match=f"line 2: .*{why}"):
            random_run("bidaf").predict_lines(["a ?\tb", line], "line {}")

    @pytest.mark.parametrize("kind", ["bidaf", "bert"])
    def test_what_is_looked_at(self, kind):
        run = random_run(kind, head={"stride": 5})
        record = {"question": "where was Ada ?", "text": f"{'so ' * 50}{CONTEXT}"}
        seen = run.task.question_attention(record, run.max_tokens)
        assert seen.question == ["where", "was", "Ada", "?"]
        answer = run.task.predict([record], run.max_tokens)[0].text
        assert answer.split()[0].strip(".,") in " ".join(seen.context)
        assert len(seen.weights) == 4
        assert {len(row) for row in seen.weights} == {len(seen.context)}
        total = torch.tensor(seen.weights).sum(0)
        assert (total <= 1 + 1e-5).all()
        if kind == "bidaf":  # which looks at nothing else
            torch.testing.assert_close(total, torch.ones_like(total))

    def test_nothing_to_look_at(self):
        assert (
            random_run("birnn").task.question_attention({"question": "a", "text": "b"}, 20) is None
        )


def test_no_answer_is_no_text():
    assert AnswerPrediction(None, [], 1.0).text == ""
