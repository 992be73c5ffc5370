"""Sequences of bits as episodes: what is given and wanted, the loss, answers in their order."""

import math

import pytest
import torch
from torch import Tensor, nn

from regard.data.synthetic.bits import CopyFormat, RecallFormat
from regard.tasks.bits import BitCopyTask


class Constant(nn.Module):
    """Says the same logits at every step."""

    def __init__(self, logits: list[float]):
        super().__init__()
        self.logits = nn.Parameter(torch.tensor(logits))

    def episode(self, inputs: Tensor) -> Tensor:
        return self.logits.expand(*inputs.shape[:2], -1)


class Echo(nn.Module):
    """A perfect copier of the first `vectors` steps, for one length."""

    def episode(self, inputs: Tensor) -> Tensor:
        many = (inputs.shape[1] - 1) // 2
        late = inputs.roll(many + 1, 1)[..., :-1]
        return 20 * (late - 0.5)


def test_what_a_copier_is_given():
    task = BitCopyTask(Echo(), CopyFormat(2))
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


def test_what_is_given_to_recall():
    task = BitCopyTask(Echo(), RecallFormat(1, 1))
    [rows] = task.collate([task.build_example("1 | 0 ? 1", "")]).inputs.tolist()
    item, asked = [0, 1, 0], [0, 0, 1]
    assert rows == [item, [1, 0, 0], item, [0, 0, 0], asked, [1, 0, 0], asked, asked]


def test_the_loss_is_in_bits_of_a_sequence():
    """Every bit is 1 with probability 3/4: a 1 costs log2 4/3, a 0 costs 2."""
    logit = math.log(3)
    task = BitCopyTask(Constant([logit, logit]), CopyFormat(2))
    pairs = [task.build_example("01 10", "", 0), task.build_example("11", "", 1)]
    one, zero = math.log2(4 / 3), 2.0
    loss = task.loss(task.collate(pairs))
    assert loss.count == 2
    assert loss.total.item() == pytest.approx(2 * (one + zero) + 2 * one, rel=1e-6)
    assert task.negative_log_likelihood(pairs).total.item() == pytest.approx(
        loss.total.item(), rel=1e-6
    )
    first, second = task.predict(pairs)
    assert first.loss / math.log(2) == pytest.approx(2 * (one + zero), rel=1e-6)
    assert second.loss / math.log(2) == pytest.approx(2 * one, rel=1e-6)
    assert first.vectors == [3, 3]
    assert first.confidence == pytest.approx(0.75)


def test_answers_come_in_their_order():
    task, heard = BitCopyTask(Echo(), CopyFormat(4)), list[int]()
    texts = ["1001 0110 0001", "1111 0000 1010", "0001 0010 0011"]
    pairs = [task.build_example(text, "", 7) for text in texts]
    found = task.predict(pairs, heard.append)
    assert [task.form.format_vectors(one.vectors) for one in found] == texts
    assert max(one.loss for one in found) < 0.01
    assert sum(heard) == 3


def test_long_sequences_are_left_out_of_training():
    task = BitCopyTask(Echo(), CopyFormat(1))
    records = [{"source": " ".join("1" * many)} for many in (1, 2, 3)]
    assert [len(pair.target) for pair in task.examples(records, 5)] == [1, 2]
    assert [pair.index for pair in task.examples(records)] == [0, 1, 2]
