"""Words that are seen once become unknown in training, and only there."""

import pytest
import torch

from regard.data.build import build_corpus
from regard.tasks.building import batch_options, build_untrained_run
from regard.tasks.catalogue import find_task
from regard.tasks.load import resolve_settings
from regard.text.special import UNKNOWN


def tag_settings(folder, kind: str = "birnn", rate: float = 0.5):
    """Return settings of sentences whose first word occurs once, and of test words not seen."""
    rows = [f"once{n} O\nand O\nagain B-X\n" for n in range(40)]
    (folder / "train.conll").write_text("\n".join(rows))
    (folder / "test.conll").write_text("new O\nand O\nagain B-X\nnever O\n")
    return resolve_settings(
        {
            "task": "tag",
            "data": {
                "kind": "tagged",
                "train": str(folder / "train.conll"),
                "dev": str(folder / "test.conll"),
                "test": str(folder / "test.conll"),
            },
            "text": {"unknown_singletons": rate},
            "model": {"kind": kind, "dim": 4, "hidden_dim": 4},
            "train": {"examples_per_batch": 40},
        }
    )


def first_batch(settings):
    corpus = build_corpus(settings.data)
    task = build_untrained_run(settings, corpus).task
    return task, corpus, next(task.batches(corpus, batch_options(settings)))


@pytest.mark.parametrize("kind", ["birnn", "bilstm_crf"])
def test_about_half_of_the_singletons_are_hidden(kind, tmp_path):
    torch.manual_seed(1)
    _, _, batch = first_batch(tag_settings(tmp_path, kind))
    ids = batch.inputs["ids"]
    assert 5 < (ids[:, 0] == UNKNOWN).sum() < 31
    assert not (ids[:, 1:] == UNKNOWN).any()
    torch.manual_seed(1)
    _, _, again = first_batch(tag_settings(tmp_path, kind))
    assert torch.equal(again.inputs["ids"], ids)


def test_no_word_is_hidden_at_rate_0_or_in_evaluation(tmp_path):
    _, _, batch = first_batch(tag_settings(tmp_path, rate=0.0))
    assert not (batch.inputs["ids"] == UNKNOWN).any()
    task, corpus, _ = first_batch(tag_settings(tmp_path, rate=1.0))
    batch = task.collate(list(task.examples(corpus.read("train"))))
    assert not (batch.inputs["ids"] == UNKNOWN).any()


@pytest.mark.parametrize("kind", ["birnn", "bilstm_crf"])
def test_check_counts_unknown_words_of_every_encoder(kind, tmp_path):
    report = (
        find_task("tag")
        .builder()
        .check_data(
            tag_settings(tmp_path, kind), lambda _name, _total, records: records, lambda *_: None
        )
    )
    unknown = {split: part["text"]["unknown"] for split, part in report["splits"].items()}
    assert unknown["train"] == 0
    assert unknown["test"] == 0.5


def test_check_of_conversations_has_no_false_unknowns(tmp_path):
    path = tmp_path / "chat.jsonl"
    path.write_text('{"turns": ["a", "b"]}\n' * 8)
    settings = resolve_settings(
        {
            "task": "chat",
            "data": {"kind": "dialogues", "train": str(path), "dev": str(path), "test": str(path)},
            "text": {"kind": "characters", "lower": False},
            "model": {"kind": "rnnlm", "dim": 4},
        }
    )
    report = (
        find_task("chat")
        .builder()
        .check_data(settings, lambda _name, _total, records: records, lambda *_: None)
    )
    assert {part["text"]["unknown"] for part in report["splits"].values()} == {0.0}


def test_other_tasks_refuse_the_setting():
    with pytest.raises(ValueError, match=r"text\.unknown_singletons has no effect: only encoders"):
        resolve_settings({"task": "language", "text": {"unknown_singletons": 0.1}})
