"""Summaries from data to ROUGE: names that nobody knew are copied, and only by copying."""

import json

import pytest
import torch

from regard.config.load import resolve
from regard.data.build import build_corpus
from regard.models.catalogue import MODELS
from regard.models.pointer import coverage_loss
from regard.tasks.translate import TextPrediction
from regard.text.special import UNKNOWN
from regard.train.run import build_run
from regard.train.summarize import SummarizeRun
from regard.training.trainer import Trainer

KINDS = [kind for kind, entry in MODELS.items() if "summarize" in entry.tasks]
HEADLINES = {"kind": "headlines", "size": 1500, "held_out": 60}
SMALL = {**HEADLINES, "size": 100, "held_out": 5}


def settings(model=None, train=None, **more):
    return resolve(
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
            **more,
        }
    )


def fitted(wanted, folder) -> SummarizeRun:
    list(Trainer(wanted, folder, lambda _: None).events())
    return SummarizeRun.load(folder)


@pytest.mark.usefixtures("unchecked")  # the shapes are checked below
def test_new_names_are_copied(tmp_path):
    run = fitted(settings(train={"coverage_after": 80}), tmp_path / "run")
    scores = run.score(run.corpus().read("test"))
    assert scores["exact"] > 95
    assert scores["rouge2"] > 95
    assert scores["copied"] > 95
    assert scores["documents"] == 60
    text = "Ann saw the boat at the park . Zorkovan won the clock at the river ."
    best = run(text)
    assert best.text == "Zorkovan won the clock"
    assert best.ids[0] == run.task.target.size + 1  # Ann is the first unknown word
    [reply] = run.predict_lines([text])
    assert json.loads(json.dumps(reply.data))["outputs"][0]["text"] == best.text
    words = run.details(text)["words"]
    assert [one["word"] for one in words] == [*best.text.split(), "</s>"]
    assert words[0]["copied"] > 0.99 > words[0]["p_gen"]
    seen = run.task.alignment(text, best.ids)
    assert seen.source == [*text.split(), "</s>"]
    assert seen.source[int(seen.weights[0].argmax())] == "Zorkovan"
    assert run.model.of_coverage.abs().sum() > 0  # it came last, and was learnt


@pytest.mark.usefixtures("unchecked")
def test_without_copying_they_are_not(tmp_path):
    wanted = settings({"copying": False, "coverage": False}, {"steps": 40})
    run = fitted(wanted, tmp_path / "run")
    scores = run.score(run.corpus().read("test"))
    assert scores["exact"] == 0
    assert "<unk>" not in run("Ann won the boat at the park .").text
    assert run.details("Ann won the boat at the park .") == {}


@pytest.mark.parametrize("kind", KINDS)
def test_every_writer_summarizes(kind, tmp_path):
    heads = {"heads": 2} if kind in ("transformer", "rnmt") else {}
    model = {"kind": kind, "dim": 8, **heads}
    wanted = resolve(
        {
            "task": "summarize",
            "data": SMALL,
            "model": {**model, **({"hidden_dim": 8} if kind == "pointer" else {})},
            "train": {"steps": 2, "examples_per_batch": 4, "max_tokens": 20},
            "decode": {"kind": "beam", "width": 2, "max_length": 5},
        }
    )
    run = fitted(wanted, tmp_path / "run")
    scores = run.score(run.corpus().read("test"))
    assert 0 <= scores["rouge1"] <= 100
    assert scores["words"] <= 5


@pytest.mark.parametrize("copying", [True, False])
def test_a_summary_depends_on_its_document_alone(copying):
    decode = {"kind": "beam", "width": 3, "max_length": 6}
    wanted = settings({"copying": copying}, data=SMALL, decode=decode)
    run = build_run(wanted, build_corpus(wanted.data))
    for weight in run.model.parameters():
        torch.nn.init.normal_(weight, std=0.5)
    texts = ["Ann won the boat", "Bob", "the Zork saw Ann and the Zork", "the park ."]
    together = [best[0] for best in run.predict(texts)]
    for text, one in zip(texts, together, strict=True):
        alone = run(text)
        assert alone.text == one.text
        assert alone.log_prob == pytest.approx(one.log_prob, abs=1e-4)


def test_pairs_are_cut_and_counted(capsys):
    wanted = settings(train={"max_tokens": 10, "max_summary_tokens": 3}, data=SMALL)
    corpus = build_corpus(wanted.data)
    run = build_run(wanted, corpus)
    run.batches(corpus)
    told = capsys.readouterr().err.splitlines()
    cut = "are longer than train.max_tokens = 10 tokens: the end is not read"
    assert told[0] == f"notice: 100 of 100 documents {cut}"
    assert told[1].startswith("notice: 100 of 100 summaries are longer than train.max_summ")
    assert len(told) == 2
    pair = next(iter(run.task.examples(corpus.read("train"))))
    assert (len(pair.source), len(pair.target)) == (10, 3)
    run.task.predict = lambda texts, *_, **__: [[TextPrediction("", 0.0, 0.0, [])] for _ in texts]
    run.predict_lines(["Ann won the boat at the park . Bob saw it .", "Ann ."])
    assert capsys.readouterr().err.startswith("notice: 1 of 2 documents are longer")
    with pytest.raises(ValueError, match="line 2: the document is empty"):
        run.predict_lines(["Ann .", "  "], "line {}")


def test_unknown_words_of_a_summary_are_those_of_its_document():
    run = build_run(settings(data=SMALL), build_corpus(settings(data=SMALL).data))
    size = run.task.source.size
    record = {"source": "Zork won the boat . Bim", "target": "Bim and Zork won"}
    [pair] = run.task.examples([record])
    assert pair.source[0] == size
    assert pair.source[-1] == size + 1
    assert pair.target[:3] == [size + 1, UNKNOWN, size]
    assert list(pair.words) == ["Zork", "Bim"]


def test_the_loss_has_coverage_when_its_time_has_come():
    wanted = settings(train={"coverage_weight": 0.5, "coverage_after": 50}, data=SMALL)
    corpus = build_corpus(wanted.data)
    run = build_run(wanted, corpus)
    torch.nn.init.constant_(run.model.of_coverage, 0.3)
    batch = next(run.batches(corpus))
    with torch.no_grad():
        memory = run.model.remember(batch.source, batch.source_valid)
        both = [
            run.model.decode_with_attention(memory, batch.target_in, covered)
            for covered in (True, False)
        ]
        told = [
            -run.model.log_likelihood(one, batch.source, batch.target_out, batch.target_valid).sum()
            for one in both
        ]
        again = coverage_loss(both[0].weights, batch.target_valid)
        assert run.loss(batch, 49).total.item() == pytest.approx(told[1].item(), rel=1e-5)
        late = (told[0] + 0.5 * again).item()
        assert run.loss(batch, 50).total.item() == pytest.approx(late, rel=1e-5)
        assert run.task.loss(batch).total.item() == pytest.approx(told[0].item(), rel=1e-5)
        assert late > told[0].item() * 1.001
    assert run.loss(batch, 0).count == batch.target_token_count


def test_what_was_best_without_coverage_counts_no_more(tmp_path):
    train = {"steps": 6, "validate_every": 2, "coverage_after": 3, "examples_per_batch": 4}
    fit = Trainer(
        settings({"dim": 4, "hidden_dim": 4}, train, data=SMALL), tmp_path, lambda _: None
    )
    values = iter([1.0, 3.0, 2.0])
    fit.dev_loss_and_metric = lambda: (lambda one: (one, one))(next(values))
    seen = [event for event in fit.events() if hasattr(event, "best")]
    assert [(one.step, one.best) for one in seen] == [(2, True), (4, True), (6, True)]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"text": {"kind": "words"}}, "needs one vocabulary: set text.joint = true"),
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
def test_settings_that_do_not_fit(more, said):
    with pytest.raises(ValueError, match=said):
        resolve({"task": "summarize", **more})
