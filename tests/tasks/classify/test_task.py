"""Classification of texts: from data to predictions, and the attention behind them."""

from pathlib import Path
from typing import Any

import pytest
import torch

from regard.data.build import build_corpus
from regard.run import Run
from regard.tasks.catalogue import model_kinds
from regard.tasks.load import resolve_settings
from regard.training.trainer import Trainer
from regard.view.terminal import Surface

KINDS = [*model_kinds("classify")]
SMALL = {
    "birnn": {"dim": 12, "hidden_dim": 8},
    "han": {"dim": 12, "hidden_dim": 8},
    "bert": {"dim": 16, "heads": 2, "layers": 1, "max_positions": 60, "dropout": 0.0},
    "elmo": {"filters": ((1, 8), (2, 8)), "dim": 12, "hidden_dim": 16, "dropout": 0.0},
}
GOOD, BAD = ["a fine film", "good and fine. very good"], ["a dull film", "bad! dull and bad"]


def classify_settings(folder: Path, kind: str) -> Any:
    lines = [f"{text}\t{label}\n" for label, texts in (("+", GOOD), ("-", BAD)) for text in texts]
    for name in ("train", "dev", "test"):
        (folder / f"{name}.tsv").write_text("".join(lines * 4))
    files = {name: str(folder / f"{name}.tsv") for name in ("train", "dev", "test")}
    return resolve_settings(
        {
            "task": "classify",
            "data": {"kind": "labeled", **files},
            "text": {"kind": "words"},
            "model": {"kind": kind, **SMALL[kind]},
            "train": {
                "steps": 40,
                "examples_per_batch": 4,
                "learning_rate": 0.005 if kind == "bert" else 0.02,
                "validate_every": 20,
                "save_every": 15,
                "metric": "accuracy",
            },
        }
    )


def train_run(folder: Path, kind: str) -> Run:
    list(Trainer(classify_settings(folder, kind), folder / "run", lambda _: None))
    return Run.load(folder / "run")


@pytest.fixture(scope="module", params=KINDS)
def run(request, tmp_path_factory) -> Run:
    """Return a trained run of each model."""
    return train_run(tmp_path_factory.mktemp(request.param), request.param)


def test_from_data_to_predictions(run):
    metrics = run.score("test")
    assert list(metrics) == ["accuracy", "f1", "loss", "texts"]
    assert metrics["accuracy"] == metrics["f1"] == 100.0
    assert metrics["texts"] == 16
    good, bad = run.predict(["good", "dull"])
    assert (good.text, bad.text) == ("+", "-")
    assert list(bad.as_dict()) == ["label", "probabilities"]
    assert sum(bad.as_dict()["probabilities"].values()) == pytest.approx(1)
    assert run("").text in "+-"  # an empty text has a class


def test_a_prediction_depends_only_on_its_text(run):
    task = run.task
    records = [{"text": " ".join(GOOD + BAD)[:n]} for n in (0, 1, 9, 30, 50)]
    counts: list[int] = []
    for record, prediction in zip(
        records, task.predict(records, on_progress=counts.append), strict=True
    ):
        [alone] = task.predict([record])
        expected = alone.as_dict()["probabilities"]
        assert prediction.as_dict()["probabilities"] == pytest.approx(expected, abs=1e-6)
    assert sum(counts) == len(records)
    assert task.predict([]) == []


def test_a_long_text_is_truncated(run):
    task: Any = run.task
    if run.settings.model.kind != "bert":
        assert task.max_tokens == run.settings.train.max_tokens
        return
    assert task.max_tokens == SMALL["bert"]["max_positions"] - 3
    text = " ".join(["fine"] * 99)
    for line in (text, f"{text}\t{text}"):
        assert run(line).text in "+-"
    assert run(text) == run(" ".join(["fine"] * task.max_tokens))


def test_attention(run):
    task: Any = run.task
    record = task.parse("good and fine. very good", "input")
    weights_by_name = task.attention_weights(record)
    assert weights_by_name
    for weights in weights_by_name.values():
        assert torch.allclose(weights.sum(-1), torch.ones(()), atol=1e-5)
    [prediction] = task.predict([record])
    assert task.attention_map(record).title == f"{prediction.label}: good and fine. very good"
    assert task.render(record, Surface()).startswith(f"{prediction.label} (")


def test_readout(run):
    task: Any = run.task
    record = {"text": "good and fine"}
    if run.settings.model.kind in ("han", "elmo"):
        with pytest.raises(ValueError, match="models that read one row of ids"):
            task.readout(record)
        return
    task.model.eval()
    readout = task.readout(record)
    [prediction] = task.predict([record])
    assert [readout.tokens[n] for n in readout.removable] == ["good", "and", "fine"]
    assert readout.output == prediction.label
    assert readout.log_prob(readout.ids).exp().item() == pytest.approx(
        prediction.probabilities[prediction.label], abs=1e-6
    )
    assert task.labels.names[readout.predict_class(readout.ids)] == prediction.label


def test_a_run_without_attention(tmp_path):
    config = classify_settings(tmp_path, "elmo")
    head = config.head.model_copy(update={"pooling": "mean"})
    config = config.model_copy(update={"head": head})
    task = Run.create(config, build_corpus(config.data)).task
    assert not task.has_attention()
    with pytest.raises(ValueError, match="EncoderClassifier has no attention"):
        task.render({"text": "good"}, Surface())


def test_a_line_is_one_text_or_two(run):
    task = run.task
    assert task.parse("a", "input") == {"text": "a"}
    assert task.parse("a\tb", "input") == {"text": "a", "pair": "b"}


def test_a_label_that_is_not_in_the_training_data(tmp_path):
    config = classify_settings(tmp_path, "birnn")
    (tmp_path / "dev.tsv").write_text("a fine film\t+\nso so\t0\n")
    message = rf"{tmp_path}/dev.tsv:2: label '0' is not in the training data; the labels are \+, -"
    with pytest.raises(ValueError, match=message):
        Trainer(config, tmp_path / "run", lambda _: None)
