"""Summarization: unknown names are copied, coverage, truncation, and attention."""

import json

import pytest
import torch

from regard.data.build import build_corpus
from regard.models.pointer import UNKNOWN, coverage_loss
from regard.run import Run
from regard.tasks.base import BatchOptions
from regard.tasks.catalogue import model_kinds
from regard.tasks.generation import TextOutput, TextPrediction
from regard.tasks.load import resolve_settings
from regard.training.trainer import Trainer
from regard.view.terminal import Surface

KINDS = [*model_kinds("summarize")]
HEADLINES = {"kind": "headlines", "size": 1500, "held_out": 60}
SMALL = {**HEADLINES, "size": 100, "held_out": 5}
TINY = {"dim": 4, "hidden_dim": 4}


def summarize_settings(model=None, train=None, **tables):
    return resolve_settings(
        {
            "task": "summarize",
            "data": HEADLINES,
            "model": {"kind": "pointer", "dim": 24, "hidden_dim": 32, **(model or {})},
            "train": {
                "steps": 120,
                "examples_per_batch": 32,
                "learning_rate": 0.01,
                "validate_every": 40,
                "save_every": 200,
                **(train or {}),
            },
            **tables,
        }
    )


OPTIONS = BatchOptions(tokens_per_batch=None, examples_per_batch=32, seed=0)


def train_run(settings, folder) -> Run:
    list(Trainer(settings, folder, lambda _: None))
    return Run.load(folder)


def create_run(settings) -> Run:
    return Run.create(settings, build_corpus(settings.data))


@pytest.fixture(scope="module")
def tiny_run() -> Run:
    """Return a run that reads ten tokens of a document."""
    decode = {"kind": "greedy", "max_length": 6}
    return create_run(summarize_settings(TINY, {"max_tokens": 10}, data=SMALL, decode=decode))


@pytest.mark.usefixtures("unchecked")  # the shapes are checked below
def test_new_names_are_copied(tmp_path):
    run = train_run(summarize_settings(train={"coverage_after": 80}), tmp_path / "run")
    scores = run.score("test")
    assert scores["exact"] > 95
    assert scores["rouge2"] > 95
    assert scores["copied"] > 95
    assert scores["documents"] == 60
    text = "Ann saw the boat at the park . Zorkovan won the clock at the river ."
    prediction = run(text)
    best = prediction.best
    assert best.text == prediction.text == "Zorkovan won the clock"
    assert best.ids[0] == run.task.target.size + 1  # Ann is the first unknown word
    record = run.task.parse(text, "TEXT")
    assert record == {"document": text}
    assert json.loads(json.dumps(prediction.as_dict()))["outputs"][0]["text"] == best.text
    words = run.task.details(record)["words"]
    assert [trace["word"] for trace in words] == [*best.text.split(), "</s>"]
    assert words[0]["copied"] > 0.99 > words[0]["p_gen"]
    alignment = run.task.alignment(text, best.ids)
    assert alignment.source == [*text.split(), "</s>"]
    assert alignment.source[int(alignment.weights[0].argmax())] == "Zorkovan"
    assert run.model.of_coverage.abs().sum() > 0  # it was learned in the last steps


@pytest.mark.usefixtures("unchecked")
def test_without_copying_there_are_no_new_names(tmp_path):
    settings = summarize_settings({"copying": False, "coverage": False}, {"steps": 40})
    run = train_run(settings, tmp_path / "run")
    scores = run.score("test")
    assert scores["exact"] == 0
    assert "<unk>" not in run("Ann won the boat at the park .").text
    assert run.task.details({"document": "Ann won the boat at the park ."}) == {}


@pytest.mark.parametrize("kind", KINDS)
def test_every_model_summarizes(kind, tmp_path):
    heads = {"heads": 2} if kind in ("transformer", "rnmt") else {}
    model = {"kind": kind, "dim": 8, **heads}
    settings = resolve_settings(
        {
            "task": "summarize",
            "data": SMALL,
            "model": {**model, **({"hidden_dim": 8} if kind == "pointer" else {})},
            "train": {"steps": 2, "examples_per_batch": 4, "max_tokens": 20},
            "decode": {"kind": "beam", "width": 2, "max_length": 5},
        }
    )
    run = train_run(settings, tmp_path / "run")
    scores = run.score("test")
    assert 0 <= scores["rouge1"] <= 100
    assert scores["words"] <= 5


@pytest.mark.parametrize("copying", [True, False])
def test_a_summary_depends_only_on_its_document(copying):
    decode = {"kind": "beam", "width": 3, "max_length": 6}
    run = create_run(summarize_settings({"copying": copying}, data=SMALL, decode=decode))
    for weight in run.model.parameters():
        torch.nn.init.normal_(weight, std=0.5)
    texts = ["Ann won the boat", "Bob", "the Zork saw Ann and the Zork", "the park ."]
    for text, prediction in zip(texts, run.predict(texts), strict=True):
        alone = run(text).best
        assert alone.text == prediction.text
        assert alone.log_prob == pytest.approx(prediction.best.log_prob, abs=1e-4)


def test_long_pairs_are_truncated_and_counted(capsys):
    settings = summarize_settings(train={"max_tokens": 10, "max_summary_tokens": 3}, data=SMALL)
    corpus = build_corpus(settings.data)
    run = Run.create(settings, corpus)
    run.task.batches(corpus, OPTIONS)
    notices = capsys.readouterr().err.splitlines()
    reason = "are longer than train.max_tokens = 10 tokens: the end is not read"
    assert notices[0] == f"notice: 100 of 100 documents {reason}"
    assert notices[1].startswith("notice: 100 of 100 summaries are longer than train.max_summ")
    assert len(notices) == 2
    example = next(iter(run.task.examples(corpus.read("train"))))
    assert (len(example.source), len(example.target)) == (10, 3)


def test_a_notice_is_printed_once_a_call(tiny_run, capsys, monkeypatch):
    run, output = tiny_run, TextOutput("", 0.0, 0.0, [])
    empty_prediction = TextPrediction("", (output,))
    monkeypatch.setattr(run.task, "decode", lambda texts, **_: [empty_prediction for _ in texts])
    run.predict(["Ann won the boat at the park . Bob saw it .", "Ann ."])
    [notice] = capsys.readouterr().err.splitlines()
    assert notice.startswith("notice: 1 of 2 documents are longer")
    run.score("dev")
    [notice] = capsys.readouterr().err.splitlines()
    assert notice.startswith("notice: 5 of 5 documents are longer")
    with pytest.raises(ValueError, match="line 2: the document is empty"):
        run.predict(["Ann .", "  "], location="line {}")


def test_attention_of_the_predicted_and_of_a_given_summary(tiny_run, capsys):
    run, record = tiny_run, {"source": "Zork won the boat .", "target": "Zork won"}
    predicted, given = run.attention(record), run.attention(record, "Zork won")
    assert predicted.title == run(record).text
    assert given.title == "Zork won"
    assert list(given.queries.tokens) == ["Zork", "won", "</s>"]
    assert list(given.keys.tokens) == ["Zork", "won", "the", "boat", ".", "</s>"]
    rendered = run.task.render(record, Surface(width=80), target="Zork won")
    assert rendered.startswith("Zork won\n\n")
    assert rendered.endswith("words (weight at least 5%); p_gen follows each summary word")
    assert capsys.readouterr().err == ""
    run.attention({"source": "the boat " * 6})
    assert capsys.readouterr().err.startswith("notice: 1 of 1 documents are longer")


def test_unknown_words_of_a_summary_are_those_of_its_document(tiny_run):
    task, size = tiny_run.task, tiny_run.task.source.size
    record = {"source": "Zork won the boat . Bim", "target": "Bim and Zork won"}
    [example] = task.examples([record])
    assert example.source[0] == size
    assert example.source[-1] == size + 1
    assert example.target[:3] == [size + 1, UNKNOWN, size]
    [document] = task.source_examples([record["source"]])
    assert list(document.words) == ["Zork", "Bim"]


def test_the_loss_has_coverage_after_coverage_after():
    settings = summarize_settings(train={"coverage_weight": 0.5, "coverage_after": 50}, data=SMALL)
    corpus = build_corpus(settings.data)
    task = Run.create(settings, corpus).task
    model = task.model
    torch.nn.init.constant_(model.of_coverage, 0.3)
    batch = next(task.batches(corpus, OPTIONS))
    with torch.no_grad():
        memory = model.remember(batch.source, batch.source_valid)
        covered, plain = (
            model.decode_with_attention(memory, batch.target_in, is_covered)
            for is_covered in (True, False)
        )
        covered_loss, plain_loss = (
            -model.log_likelihood(output, batch.source, batch.target_out, batch.target_valid).sum()
            for output in (covered, plain)
        )
        penalty = coverage_loss(covered.weights, batch.target_valid)
        assert task.loss(batch, 49).total.item() == pytest.approx(plain_loss.item(), rel=1e-5)
        late = (covered_loss + 0.5 * penalty).item()
        assert task.loss(batch, 50).total.item() == pytest.approx(late, rel=1e-5)
        evaluated = task.cross_entropy(batch).total.item()
        assert evaluated == pytest.approx(covered_loss.item(), rel=1e-5)
        assert late > covered_loss.item() * 1.001
    assert task.loss(batch, 0).count == batch.target_token_count


@pytest.mark.parametrize(("model", "expected"), [({}, 50), ({"coverage": False}, 0)])
def test_the_best_score_is_reset_only_with_coverage(model, expected):
    settings = summarize_settings({**TINY, **model}, {"coverage_after": 50}, data=SMALL)
    assert create_run(settings).task.best_resets_after == expected


def test_the_best_score_without_coverage_does_not_count(tmp_path):
    train = {"steps": 6, "validate_every": 2, "coverage_after": 3, "examples_per_batch": 4}
    settings = summarize_settings(TINY, train, data=SMALL)
    trainer = Trainer(settings, tmp_path, lambda _: None)
    values = iter([1.0, 3.0, 2.0])
    trainer.dev_loss_and_metric = lambda: (lambda value: (value, value))(next(values))
    validations = [event for event in trainer if hasattr(event, "best")]
    assert [(v.step, v.best) for v in validations] == [(2, True), (4, True), (6, True)]


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        (
            {"text": {"kind": "words", "joint": False}},
            "needs one vocabulary: set text.joint = true",
        ),
        ({"train": {"label_smoothing": 0.1}}, "label_smoothing is not for a pointer that copies"),
        (
            {"train": {"steps": 100, "validate_every": 30, "coverage_after": 95}},
            "leaves no validation with coverage: the last is after 90 steps",
        ),
        ({"train": {"coverage_after": 9, "patience": 2}}, "patience may end the training before"),
        (
            {"text": {"kind": "bpe", "split_punctuation": True, "joint": True}},
            "split_punctuation is for kind = 'words'",
        ),
    ],
)
def test_settings_that_do_not_fit(tables, message):
    with pytest.raises(ValueError, match=message):
        resolve_settings({"task": "summarize", **tables})
