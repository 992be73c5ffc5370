"""Question answering: windows and offsets, and runs from questions to spans of contexts."""

import json
from typing import Any, ClassVar

import pytest
import torch

from regard.data.build import build_corpus
from regard.data.synthetic.facts import Facts
from regard.run import Run
from regard.tasks.answer.inputs import (
    JoinedLayout,
    SeparateLayout,
    sliding_windows,
    split_words,
    token_span,
)
from regard.tasks.answer.model import gather_context, negative_log_prob
from regard.tasks.answer.prediction import AnswerSpan, to_prediction
from regard.tasks.answer.view import CONTEXT_LABEL, question_attention
from regard.tasks.catalogue import model_kinds
from regard.tasks.load import resolve_settings
from regard.text.special import END, START, UNKNOWN
from regard.text.train import train_tokenizer
from regard.training.trainer import Trainer
from regard.view.terminal import Surface

KINDS = [*model_kinds("answer")]
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


def answer_settings(kind: str, data=None, head=None, **train):
    return resolve_settings(
        {
            "task": "answer",
            "data": {"kind": "facts", "size": 200, "held_out": 40, **(data or EASY)},
            "text": {"kind": "words", "lower": True},
            "model": {"kind": kind, **SMALL[kind]},
            "head": {"max_answer_tokens": 4, "dropout": 0.0, **(head or {})},
            "train": {"steps": 4, "examples_per_batch": 16, "max_tokens": 40, **train},
        }
    )


def random_run(kind: str, **options) -> Any:
    """Return a run with large random weights."""
    config = answer_settings(kind, **options)
    run = Run.create(config, build_corpus(config.data))
    generator = torch.Generator().manual_seed(0)
    for weight in run.model.parameters():
        torch.nn.init.normal_(weight, std=0.5, generator=generator)
    return run


@pytest.fixture(scope="module", params=KINDS)
def run(request) -> Any:
    return random_run(request.param)


@pytest.fixture(scope="module")
def bidaf_run() -> Any:
    return random_run("bidaf")


@pytest.mark.usefixtures("unchecked")  # the shapes are checked below
def test_from_questions_to_answers(tmp_path):
    """Questions with one attribute; two attributes take longer (docs/results.md)."""
    data = {**EASY, "size": 64 * 60}
    train = {"steps": 140, "learning_rate": 0.006, "validate_every": 140, "max_grad_norm": 5.0}
    settings = answer_settings("bidaf", data, **train, examples_per_batch=64)
    list(Trainer(settings, tmp_path / "run", lambda _: None))
    run = Run.load(tmp_path / "run")
    scores = run.score("test")
    assert scores["exact"] > 90
    assert scores["questions"] == 40
    record = run.read_split("test")[0]
    prediction: Any = run(record)
    assert prediction.answer == record["answers"][0]["text"]
    assert prediction.span.start == record["answers"][0]["start"]
    assert prediction.span.probability > 0.5


def test_a_prediction_depends_only_on_its_record(run):
    records = list(Facts(6, **{**EASY, "max_answer_words": 3}).read("train"))
    records += [{"question": "a ?", "text": "word"}, {"question": "?", "text": "x " * 90}]
    counts: list[int] = []
    together = run.predict(records, on_progress=counts.append)
    assert sum(counts) == len(records)  # records, not windows
    for record, prediction in zip(records, together, strict=True):
        alone = run(record)
        assert alone.answer == prediction.answer
        assert alone.span.probability == pytest.approx(prediction.span.probability, abs=1e-5)
        for span in prediction.candidates:
            assert record["text"][span.start : span.end] == span.text
            assert len(span.text.split()) <= 4
        assert 0 < sum(span.probability for span in prediction.candidates) <= 1 + 1e-6


@pytest.mark.parametrize("kind", KINDS)
def test_probabilities_sum_to_one(kind, monkeypatch):
    monkeypatch.setattr("regard.tasks.answer.task.MAX_CANDIDATES", 10_000)
    run = random_run(kind, head={"allow_no_answer": True})
    prediction = run("what is it ?\tone two three four .")
    assert len(prediction.candidates) == 5 + 4 + 3 + 2
    total = sum(span.probability for span in prediction.candidates)
    assert total + prediction.no_answer_probability == pytest.approx(1)


@pytest.mark.parametrize("kind", KINDS)
def test_training_and_loading(tmp_path, kind):
    list(Trainer(answer_settings(kind, validate_every=2), tmp_path / "run", lambda _: None))
    run = Run.load(tmp_path / "run")
    assert run.task.negative_log_likelihood(run.corpus().read("dev")).count == 40
    assert list(run.score("dev")) == ["exact", "f1", "exact_signature", "loss", "questions"]


class TestWindows:
    def test_windows_cover_all_tokens(self):
        for count in range(1, 30):
            for size in range(1, 12):
                for stride in range(1, 14):
                    windows = list(sliding_windows(count, size, stride))
                    assert {n for window in windows for n in range(*window)} == set(range(count))
                    assert all(0 < last - first <= size for first, last in windows)
        assert list(sliding_windows(5, 5, 2)) == [(0, 5)]
        assert list(sliding_windows(6, 4, 2)) == [(0, 4), (2, 6)]

    @pytest.mark.parametrize("kind", KINDS)
    def test_targets(self, kind):
        """The target is the answer in each window that holds it, and none in the others."""
        run = random_run(kind, head={"stride": 5}, max_tokens=20)
        [record] = Facts(1, **{**EASY, "entities": 6}).read("train")
        examples = list(run.task.examples([record]))
        assert len(examples) > 2
        words = record["answers"][0]["text"].split()
        answered = 0
        for example in examples:
            if example.start:
                context = example.row[example.context_start :]
                span = context[example.start - 1 : example.end]
                tokens = [run.vocabularies["text"].token(n) if kind != "bidaf" else n for n in span]
                assert tokens == words
                answered += 1
            else:
                assert example.end == 0
        assert 0 < answered < len(examples)

    def test_the_best_of_all_windows(self, bidaf_run):
        """Scores are relative to no answer, whatever else is in a window."""
        offsets = [(n, n + 1) for n in range(9)]
        scores = {(1, 1): 2.0, (7, 7): 3.0}
        prediction = bidaf_run.task.to_prediction("abcdefghi", offsets, scores, [2.5, 3.1])
        assert prediction.answer == "h"
        expected = (3.0 - torch.tensor([2.5, 3.1]).logsumexp(0)).exp().item()
        assert prediction.span.probability == pytest.approx(expected, rel=1e-5)

    def test_an_answer_that_no_window_holds_is_left_out(self):
        run = random_run("bidaf", head={"stride": 2}, max_tokens=2)
        record = {"question": "q ?", "text": "a b c d", "answers": [{"text": "a b c", "start": 0}]}
        assert list(run.task.examples([record])) == []


class TestNoAnswer:
    DATA: ClassVar = {**EASY, "unanswerable": 0.5}

    def test_it_must_be_allowed(self, tmp_path):
        with pytest.raises(ValueError, match=r"has no answer; set head\.allow_no_answer = true"):
            Trainer(answer_settings("bidaf", self.DATA), tmp_path / "run", lambda _: None)

    def test_the_threshold_is_saved(self, tmp_path):
        head = {"allow_no_answer": True}
        config = answer_settings("bidaf", self.DATA, head, validate_every=2, ema=0.9)
        trainer = Trainer(config, tmp_path / "run", lambda _: None)
        list(trainer)
        run = Run.load(tmp_path / "run")
        assert run.model.threshold.item() != 0
        metrics = run.score("dev")
        assert metrics["f1"] == pytest.approx(trainer.best_metric)
        assert {"exact_with_answer", "exact_without"} < set(metrics)
        prediction: Any = run("what is the home of x ?\tthe home of y is z .")
        assert 0 < prediction.no_answer_probability < 1

    def test_validation_tunes_the_threshold(self):
        run = random_run("bidaf", data=self.DATA, head={"allow_no_answer": True})
        records = run.read_split("dev")
        assert run.task.tuned_weights() == {}
        value = run.task.validation_metric("f1", records)
        tuned = run.task.tuned_weights()
        assert list(tuned) == ["threshold"]
        assert torch.equal(tuned["threshold"], run.model.threshold)
        assert run.task.metrics(records, run.predict(records))["f1"] == value

    def test_without_no_answer_nothing_is_tuned(self, bidaf_run):
        bidaf_run.task.validation_metric("exact", bidaf_run.read_split("dev"))
        assert bidaf_run.task.tuned_weights() == {}

    def test_below_the_threshold_there_is_no_answer(self):
        run = random_run("bidaf", head={"allow_no_answer": True})
        run.model.threshold.fill_(1e9)
        prediction = run("a ?\tb  c")
        assert prediction.span is None
        assert prediction.text == "no answer: b c"
        assert prediction.spans == (("no answer:", ""), ("b  c", ""))
        assert prediction.as_dict()["answer"] == ""
        assert prediction.as_dict()["start"] is None
        run.model.threshold.fill_(-1e9)
        assert run("a ?\tb c").span is not None

    def test_another_threshold(self):
        prediction = to_prediction("a b", [AnswerSpan("b", 2, 3, 0.5, 1.0)], 0.2)
        assert prediction.answer == "b"
        assert prediction.with_threshold(1.0) == prediction
        unanswered = prediction.with_threshold(1.1)
        assert (unanswered.answer, unanswered.text) == ("", "no answer: a b")
        assert unanswered.with_threshold(0.0) == prediction


class TestLayouts:
    def test_words_and_punctuation(self):
        words = split_words(CONTEXT)
        assert " ".join(words.tokens) == "Ada met Bob - Ray in Rome , in 1912 ."
        assert [CONTEXT[a:b] for a, b in words.offsets] == words.tokens

    @pytest.mark.parametrize("kind", ["wordpiece", "bpe", "byte_bpe", "unigram", "characters"])
    def test_offsets_of_subwords(self, kind):
        text = "Zoë saw “Bob” in Curaçao."
        tokenizer = train_tokenizer(kind, [text, CONTEXT] * 3, 300, lower=True)
        layout = JoinedLayout(tokenizer, START, END, segments=True)
        [tokenized] = layout.tokenize([text])
        first, last = token_span(tokenized.offsets, text.index("Cura"), text.index("."))
        start, end = tokenized.offsets[first][0], tokenized.offsets[last][1]
        assert text[start:end].strip().startswith("Curaçao")

    def test_token_spans(self):
        offsets = [(0, 3), (4, 7), (7, 8)]
        assert token_span(offsets, 4, 8) == (1, 2)
        assert token_span(offsets, 5, 6) == (1, 1)  # part of a word counts as the word
        assert token_span(offsets, 3, 4) is None

    def test_joined(self):
        text = train_tokenizer("words", ["a b c d"], 20)
        layout = JoinedLayout(text, START, END, segments=True, is_word_level=True)
        question, context = layout.tokenize(["a b", "c zz d"])
        row = layout.row(question.tokens, context.tokens)
        assert row[0] == START
        assert [row[3], row[-1]] == [END, END]
        assert row[5] == UNKNOWN
        starts = [layout.context_start(question.tokens)] * 2
        inputs = layout.tensors([row, [*row[:-2], END]], starts)
        assert inputs["counts"].tolist() == [3, 2]
        assert inputs["segments"].tolist() == [[0, 0, 0, 0, 1, 1, 1, 1], [0, 0, 0, 0, 1, 1, 1, 0]]
        assert layout.token_ids(context.tokens) == context.tokens

    def test_separate(self):
        layout = SeparateLayout(train_tokenizer("words", ["a b c d"], 20))
        inputs = layout.tensors([["a", "b", "zz"], ["c", "d"]], [2, 1])
        assert inputs["question_valid"].tolist() == [[True, True], [True, False]]
        assert inputs["ids"].tolist() == [[UNKNOWN], layout.text.encode_ids(["d"])[0]]
        assert inputs["characters"].shape == (2, 1, 50)
        assert layout.token_ids(["zz", "d"]) == inputs["ids"].flatten().tolist()

    def test_gather_context(self):
        energy = torch.arange(12.0).view(2, 6)
        gathered = gather_context(energy, torch.tensor([2, 3]), torch.tensor([3, 1]))
        inf = float("inf")
        assert gathered.tolist() == [[0, 2, 3, 4], [6, 9, -inf, -inf]]


def test_smoothing_is_over_valid_positions():
    energy = torch.tensor([[1.0, 2.0, -torch.inf], [0.5, 0.0, 1.0]])
    target = torch.tensor([1, 2])
    rows = [torch.tensor([1.0, 2.0]).log_softmax(0), torch.tensor([0.5, 0.0, 1.0]).log_softmax(0)]
    expected = sum(-0.9 * row[n] - 0.1 * row.mean() for row, n in zip(rows, (1, 2), strict=True))
    torch.testing.assert_close(negative_log_prob(energy, target, 0.1), expected)


class TestPredictions:
    def test_the_answer_is_marked_in_its_context(self):
        run = random_run("birnn")
        prediction = run(f"where ?\t{CONTEXT}")
        fields = prediction.as_dict()
        assert list(fields) == [
            *("answer", "start", "end", "probability", "score", "no_answer", "answers", "context")
        ]
        answer = fields["answer"]
        assert f"[{answer}]" in prediction.text
        assert prediction.text.replace("[", "").replace("]", "") == CONTEXT
        assert CONTEXT[fields["start"] : fields["end"]] == answer
        assert (answer, "answer") in prediction.spans
        assert len(fields["answers"]) == 5
        json.dumps(fields)

    @pytest.mark.parametrize(
        ("line", "message"),
        [
            ("where ?", "has no tab"),
            ("\tcontext", "the question is empty"),
            ("where ? \t ", "the context is empty"),
            (f"{'so ' * 30}\tcontext", "the question has 30 tokens, more than 20; shorten it"),
        ],
    )
    def test_bad_lines(self, bidaf_run, line, message):
        with pytest.raises(ValueError, match=f"line 2: .*{message}"):
            bidaf_run.predict(["a ?\tb", line], location="line {}")

    def test_too_few_tokens(self):
        with pytest.raises(ValueError, match=r"train\.max_tokens: 1 tokens are too few"):
            random_run("bidaf", max_tokens=1)

    @pytest.mark.parametrize("kind", ["bidaf", "bert"])
    def test_attention(self, kind):
        run = random_run(kind, head={"stride": 5})
        record = {"question": "where was Ada ?", "text": f"{'so ' * 50}{CONTEXT}"}
        attention = question_attention(run.task, record)
        assert attention is not None
        words = ["where", "was", "Ada", "?"]
        special = ["<s>", *words, "</s>", CONTEXT_LABEL]  # one row has the context too
        assert attention.question == (words if kind == "bidaf" else special)
        prediction = run(record)
        assert split_words(prediction.answer).tokens[0] in attention.context
        assert {len(row) for row in attention.weights} == {len(attention.context)}
        total = torch.tensor(attention.weights).sum(0)
        torch.testing.assert_close(total, torch.ones_like(total))
        attention_map = run.attention(record)
        assert attention_map.title == f"where was Ada ? {prediction.text}"
        assert attention_map.keys.tokens == tuple(attention.question)
        assert run.task.render(record, Surface()).startswith(prediction.text)

    def test_no_attention(self):
        run, record = random_run("birnn"), {"question": "a", "text": "b"}
        assert question_attention(run.task, record) is None
        with pytest.raises(ValueError, match="has no attention to observe"):
            run.task.render(record, Surface())


def test_no_answer_has_no_text():
    prediction = to_prediction("", [], 1.0)
    assert (prediction.answer, prediction.span) == ("", None)
