"""Answering: windows and places, and runs from questions to stretches of their contexts."""

import json
from typing import ClassVar

import pytest
import torch

from regard.config.load import resolve
from regard.corpora.build import build
from regard.corpora.facts import Facts
from regard.models.catalogue import MODELS
from regard.tasks.answer import Answer, picked, surprise
from regard.tasks.answer_inputs import Apart, Joined, covered, windows, words_of
from regard.text.learn import train_tokeniser
from regard.text.special import END, START, UNKNOWN
from regard.train.answer import AnswerRun
from regard.train.fit import Fit
from regard.train.run import prepare

KINDS = [kind for kind, entry in MODELS.items() if "answer" in entry.tasks]
SMALL = {
    "bidaf": {
        "dim": 32,
        "hidden_dim": 32,
        "letters_dim": 8,
        "filters": ((3, 8),),
        "layers": 1,
        "dropout": 0.0,
    },
    "birnn": {"dim": 16, "hidden_dim": 8},
    "bert": {"dim": 16, "heads": 2, "layers": 1, "context": 64, "dropout": 0.0},
}
EASY = {"things": 3, "traits": 1, "words": 20, "longest": 2, "new_names": 0.0}
CONTEXT = "Ada met Bob-Ray in Rome, in 1912."


def settings(kind: str, data=None, head=None, **train):
    return resolve(
        {
            "task": "answer",
            "data": {"kind": "facts", "size": 200, "held_out": 40, **(data or EASY)},
            "text": {"kind": "words", "lower": True},
            "model": {"kind": kind, **SMALL[kind]},
            "head": {"longest": 4, "dropout": 0.0, **(head or {})},
            "train": {"steps": 4, "sentences_per_batch": 16, "longest": 40, **train},
        }
    )


def random_run(kind: str, **more) -> AnswerRun:
    wanted = settings(kind, **more)
    run = prepare(wanted, build(wanted.data))
    for weight in run.model.parameters():
        torch.nn.init.normal_(weight, std=0.5)
    return run


@pytest.mark.usefixtures("unchecked")  # the shapes are checked below
def test_from_questions_to_answers(tmp_path):
    """Facts that one key tells apart; two take longer (docs/results.md)."""
    data = {**EASY, "size": 64 * 60}
    more = {"steps": 140, "learning_rate": 0.006, "validate_every": 140, "clip": 5.0}
    more |= {"sentences_per_batch": 64}
    wanted = settings("bidaf", data, **more)
    list(Fit(wanted, tmp_path / "run", lambda _: None).events())
    run = AnswerRun.load(tmp_path / "run")
    scores = run.score(run.corpus().read("test"))
    assert scores["exact"] > 90
    assert scores["questions"] == 40
    record = next(run.corpus().read("test"))
    said = run(record["question"], record["text"])
    assert said.text == record["answers"][0]["text"]
    assert said.said.start == record["answers"][0]["start"]
    assert said.said.probability > 0.5


@pytest.mark.parametrize("kind", KINDS)
def test_an_answer_depends_on_its_text_alone(kind):
    run = random_run(kind)
    records = list(Facts(6, **{**EASY, "longest": 3}).read("train"))
    records += [{"question": "a ?", "text": "word"}, {"question": "?", "text": "x " * 90}]
    together = run.predict(records)
    for record, one in zip(records, together, strict=True):
        alone = run(record["question"], record["text"])
        assert alone.text == one.text
        assert alone.said.probability == pytest.approx(one.said.probability, abs=1e-5)
        for some in one.stretches:
            assert record["text"][some.start : some.end] == some.text
            assert len(some.text.split()) <= 4
        assert 0 < sum(some.probability for some in one.stretches) <= 1 + 1e-6


@pytest.mark.parametrize("kind", KINDS)
def test_all_that_may_be_said_sums_to_one(kind, monkeypatch):
    monkeypatch.setattr("regard.tasks.answer.KEPT", 10_000)
    run = random_run(kind, head={"no_answer": True})
    found = run("what is it ?", "one two three four .")
    assert len(found.stretches) == 5 + 4 + 3 + 2
    assert sum(one.probability for one in found.stretches) + found.none == pytest.approx(1)


@pytest.mark.parametrize("kind", KINDS)
def test_training_and_loading(tmp_path, kind):
    fit = Fit(settings(kind, validate_every=2), tmp_path / "run", lambda _: None)
    list(fit.events())
    run = AnswerRun.load(tmp_path / "run")
    loss = run.likelihood(run.corpus().read("dev"))
    assert loss.tokens == 40
    assert set(run.score(run.corpus().read("dev"))) == {
        *("exact", "f1", "exact_signature", "loss", "questions")
    }


class TestWindows:
    def test_all_is_read(self):
        for count in range(1, 30):
            for room in range(1, 12):
                for stride in range(1, 14):
                    found = list(windows(count, room, stride))
                    assert {n for one in found for n in range(*one)} == set(range(count))
                    assert all(0 < last - first <= room for first, last in found)
        assert list(windows(5, 5, 2)) == [(0, 5)]
        assert list(windows(6, 4, 2)) == [(0, 4), (2, 6)]

    @pytest.mark.parametrize("kind", KINDS)
    def test_targets(self, kind):
        """The answer is where it is in each window that has it, and nowhere in the others."""
        run = random_run(kind, head={"stride": 5})
        [record] = Facts(1, **{**EASY, "things": 6}).read("train")
        pairs = list(run.task.pairs([record], 20))
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
        run = random_run("bidaf", head={"stride": 4, "longest": 1})
        places = [(n, n + 1) for n in range(9)]
        found = run.task.chosen("abcdefghi", places, {(1, 1): 2.0, (7, 7): 3.0}, [2.5, 3.1])
        assert found.text == "h"
        everything = torch.tensor([2.5, 3.1]).logsumexp(0)
        assert found.said.probability == pytest.approx((3.0 - everything).exp().item(), rel=1e-5)

    def test_an_answer_that_no_window_holds_is_left_out(self):
        run = random_run("bidaf", head={"stride": 2})
        record = {"question": "q ?", "text": "a b c d", "answers": [{"text": "a b c", "start": 0}]}
        assert list(run.task.pairs([record], 2)) == []


class TestNoAnswer:
    DATA: ClassVar = {**EASY, "unanswerable": 0.5}

    def test_it_has_to_be_allowed(self, tmp_path):
        with pytest.raises(ValueError, match=r"has no answer; set head\.no_answer = true"):
            Fit(settings("bidaf", self.DATA), tmp_path / "run", lambda _: None)

    def test_the_threshold_is_kept(self, tmp_path):
        wanted = settings("bidaf", self.DATA, {"no_answer": True}, validate_every=2, ema=0.9)
        fit = Fit(wanted, tmp_path / "run", lambda _: None)
        list(fit.events())
        run = AnswerRun.load(tmp_path / "run")
        assert run.model.threshold.item() != 0
        scores = run.score(run.corpus().read("dev"))
        assert scores["f1"] == pytest.approx(fit.best)
        assert {"exact_with_answer", "exact_without"} < set(scores)
        assert 0 < run("what is the home of x ?", "the home of y is z .").none < 1

    def test_below_the_threshold_nothing_is_said(self):
        run = random_run("bidaf", head={"no_answer": True})
        run.model.threshold.fill_(1e9)
        assert run("a ?", "b c").said is None
        [reply] = run.reply(["a ?\tb  c"])
        assert reply.text == "no answer: b c"
        assert reply.facts["answer"] == ""
        assert reply.facts["start"] is None
        run.model.threshold.fill_(-1e9)
        assert run("a ?", "b c").said is not None


class TestPlaces:
    def test_words_and_marks(self):
        found = words_of(CONTEXT)
        assert " ".join(found.parts) == "Ada met Bob - Ray in Rome , in 1912 ."
        assert [CONTEXT[a:b] for a, b in found.places] == found.parts

    @pytest.mark.parametrize("kind", ["wordpiece", "bpe", "byte_bpe", "unigram", "characters"])
    def test_pieces_know_where_they_stand(self, kind):
        text = "Zoë saw “Bob” in Curaçao."
        made = train_tokeniser(kind, [text, CONTEXT] * 3, 300, lower=True)
        layout = Joined(made, START, END, segments=True)
        [cut] = layout.cut([text])
        first, last = covered(cut.places, text.index("Cura"), text.index("."))
        start, end = cut.places[first][0], cut.places[last][1]
        assert text[start:end].strip().startswith("Curaçao")

    def test_covered(self):
        places = [(0, 3), (4, 7), (7, 8)]
        assert covered(places, 4, 8) == (1, 2)
        assert covered(places, 5, 6) == (1, 1)  # a part of a word is the word
        assert covered(places, 3, 4) is None

    def test_joined(self):
        text = train_tokeniser("words", ["a b c d"], 20)
        layout = Joined(text, START, END, segments=True, words=True)
        asked, context = layout.cut(["a b", "c zz d"])
        row = layout.row(asked.parts, context.parts)
        assert row[0] == START
        assert [row[3], row[-1]] == [END, END]
        assert row[5] == UNKNOWN
        found = layout.tensors([row, [*row[:-2], END]], [layout.begin(asked.parts)] * 2)
        assert found["counts"].tolist() == [3, 2]
        assert found["segments"].tolist() == [[0, 0, 0, 0, 1, 1, 1, 1], [0, 0, 0, 0, 1, 1, 1, 0]]

    def test_apart(self):
        layout = Apart(train_tokeniser("words", ["a b c d"], 20))
        found = layout.tensors([["a", "b", "zz"], ["c", "d"]], [2, 1])
        assert found["question_valid"].tolist() == [[True, True], [True, False]]
        assert found["ids"].tolist() == [[UNKNOWN], layout.text.ids(["d"])[0]]
        assert found["characters"].shape == (2, 1, 50)

    def test_picked(self):
        energy = torch.arange(12.0).view(2, 6)
        found = picked(energy, torch.tensor([2, 3]), torch.tensor([3, 1]))
        inf = float("inf")
        assert found.tolist() == [[0, 2, 3, 4], [6, 9, -inf, -inf]]


def test_smoothing_is_over_what_is_there():
    energy = torch.tensor([[1.0, 2.0, -torch.inf], [0.5, 0.0, 1.0]])
    true = torch.tensor([1, 2])
    logs = [torch.tensor([1.0, 2.0]).log_softmax(0), torch.tensor([0.5, 0.0, 1.0]).log_softmax(0)]
    by_hand = sum(-0.9 * one[n] - 0.1 * one.mean() for one, n in zip(logs, (1, 2), strict=True))
    torch.testing.assert_close(surprise(energy, true, 0.1), by_hand)


class TestReplies:
    def test_the_answer_is_marked_in_its_context(self):
        run = random_run("birnn")
        [reply] = run.reply([f"where ?\t{CONTEXT}"])
        said = reply.facts["answer"]
        assert f"[{said}]" in reply.text
        assert reply.text.replace("[", "").replace("]", "") == CONTEXT
        assert CONTEXT[reply.facts["start"] : reply.facts["end"]] == said
        assert (said, "answer") in reply.parts
        assert len(reply.facts["answers"]) == 5
        json.dumps(reply.facts)

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
            random_run("bidaf").reply(["a ?\tb", line], "line {}")

    @pytest.mark.parametrize("kind", ["bidaf", "bert"])
    def test_what_is_looked_at(self, kind):
        run = random_run(kind, head={"stride": 5})
        record = {"question": "where was Ada ?", "text": f"{'so ' * 50}{CONTEXT}"}
        seen = run.task.asks(record, run.longest)
        assert seen.question == ["where", "was", "Ada", "?"]
        answer = run.task.answers([record], run.longest)[0].text
        assert answer.split()[0].strip(".,") in " ".join(seen.context)
        assert len(seen.weights) == 4
        assert {len(row) for row in seen.weights} == {len(seen.context)}
        total = torch.tensor(seen.weights).sum(0)
        assert (total <= 1 + 1e-5).all()
        if kind == "bidaf":  # which looks at nothing else
            torch.testing.assert_close(total, torch.ones_like(total))

    def test_nothing_to_look_at(self):
        assert random_run("birnn").task.asks({"question": "a", "text": "b"}, 20) is None


def test_no_answer_is_no_text():
    assert Answer(None, [], 1.0).text == ""
