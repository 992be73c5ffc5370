"""Sequences of bits: inputs and targets, the loss, predictions, the builder."""

import math

import pytest
import torch
from rich.console import Console
from torch import Tensor, nn

from regard.data.build import build_corpus
from regard.data.synthetic.bits import CopyFormat, RecallFormat
from regard.tasks.bits.build import BUILDER
from regard.tasks.bits.task import BitsTask
from regard.tasks.load import resolve_settings
from regard.view.terminal import Surface


class Constant(nn.Module):
    """A model with the same logits at every step."""

    def __init__(self, logits: list[float]):
        super().__init__()
        self.logits = nn.Parameter(torch.tensor(logits))

    def episode(self, inputs: Tensor) -> Tensor:
        return self.logits.expand(*inputs.shape[:2], -1)


class Echo(nn.Module):
    """A model that copies perfectly if all sequences of a batch have one length."""

    def episode(self, inputs: Tensor) -> Tensor:
        vectors = (inputs.shape[1] - 1) // 2
        delayed = inputs.roll(vectors + 1, 1)[..., :-1]
        return 20 * (delayed - 0.5)


def test_inputs_and_targets_of_copy():
    task = BitsTask(Echo(), CopyFormat(2))
    batch = task.collate([task.build_example("01 10", ""), task.build_example("11", "")])
    assert batch.inputs.tolist() == [
        [[0, 1, 0], [1, 0, 0], [0, 0, 1], [0, 0, 1], [0, 0, 1]],
        [[1, 1, 0], [0, 0, 1], [0, 0, 1], [0, 0, 0], [0, 0, 0]],
    ]
    assert batch.answer_mask.tolist() == [
        [False] * 3 + [True] * 2,
        [False] * 2 + [True] + [False] * 2,
    ]
    assert batch.targets[batch.answer_mask].tolist() == [[0, 1], [1, 0], [1, 1]]


def test_inputs_of_recall():
    task = BitsTask(Echo(), RecallFormat(1, 1))
    [rows] = task.collate([task.build_example("1 | 0 ? 1", "")]).inputs.tolist()
    item, query = [0, 1, 0], [0, 0, 1]
    assert rows == [item, [1, 0, 0], item, [0, 0, 0], query, [1, 0, 0], query, query]


def test_loss_is_in_bits_per_sequence():
    """Every bit is 1 with probability 3/4: a 1 costs log2 4/3, a 0 costs 2."""
    logit = math.log(3)
    task = BitsTask(Constant([logit, logit]), CopyFormat(2))
    records = [{"source": "01 10"}, {"source": "11"}]
    one, zero = math.log2(4 / 3), 2.0
    loss = task.loss(task.collate(list(task.examples(records))), 0)
    assert loss.count == 2
    assert loss.total.item() == pytest.approx(2 * (one + zero) + 2 * one, rel=1e-6)
    assert task.negative_log_likelihood(records).total.item() == pytest.approx(
        loss.total.item(), rel=1e-6
    )
    first, second = task.predict(records)
    assert first.loss / math.log(2) == pytest.approx(2 * (one + zero), rel=1e-6)
    assert second.loss / math.log(2) == pytest.approx(2 * one, rel=1e-6)
    assert first.vectors == (3, 3)
    assert (first.text, first.target, first.wrong) == ("11 11", "01 10", 2)
    assert first.confidence == pytest.approx(0.75)


def test_predictions_are_in_order():
    task, counts = BitsTask(Echo(), CopyFormat(4)), list[int]()
    texts = ["1001 0110 0001", "1111 0000 1010", "0001 0010 0011"]
    predictions = task.predict([{"source": text} for text in texts], on_progress=counts.append)
    assert [prediction.text for prediction in predictions] == texts
    assert max(prediction.loss for prediction in predictions) < 0.01
    assert sum(counts) == 3


def test_long_sequences_are_left_out_of_training():
    task = BitsTask(Echo(), CopyFormat(1), max_tokens=5)
    records = [{"source": " ".join("1" * count)} for count in (1, 2, 3)]
    assert [len(example.target) for example in task.examples(records)] == [1, 2]
    assert [example.index for example in task.evaluation_examples(records)] == [0, 1, 2]


def test_metrics_of_each_tested_size():
    task = BitsTask(Constant([20.0, 20.0]), CopyFormat(2), test_sizes=(1, 2, 5))
    sources = ("11", "01", "11 00", "11 11")
    records = [{"source": source, "size": len(source.split())} for source in sources]
    scores = task.score(records)
    assert [scores[name] for name in ("wrong", "wrong_1", "wrong_2")] == [0.75, 0.5, 1.0]
    assert "wrong_5" not in scores
    assert list(scores)[:3] == ["bits", "bits_signature", "wrong"]
    assert scores["sequences"] == 4


@pytest.mark.parametrize(("task_name", "width"), [("copy", 3), ("recall", 2)])
def test_the_builder_reads_settings(task_name, width):
    settings = resolve_settings(
        {
            "task": task_name,
            "data": {"width": width, "test_sizes": [4, 9]},
            "model": {"dim": 8, "slots": 10, "slot_dim": 4, "read_heads": 2},
            "train": {"max_tokens": 77},
        }
    )
    model = BUILDER.build_model(settings, {})
    task = BUILDER.build_task(settings, {}, model)
    assert (task.name, task.max_tokens, task.test_sizes) == (task_name, 77, (4, 9))
    record = next(build_corpus(settings.data).read("dev"))
    line = task.parse(record["source"], "here")
    [prediction] = task.predict([line])
    assert {**line, **prediction.as_dict()}["target"] == record["target"]
    attention = task.attention_map(line)
    assert [layer.heads for layer in attention.layers] == [2, 1]
    assert attention.title == record["source"]
    text = task.render(line, Surface.from_console(Console(width=80, color_system=None)))
    assert text.startswith(f"{prediction.text} ({prediction.wrong} bit")
    assert "Reader, head 2" in text
    with pytest.raises(ValueError, match="here: 'x' is not a vector"):
        task.parse("x ? x", "here") if task_name == "recall" else task.parse("x", "here")
