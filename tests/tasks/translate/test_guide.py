"""Guided alignment: the loss against a loop in float64, and token links from word links."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from regard.attention.observe import observe
from regard.batching.example import Batch, Example, collate
from regard.config.decode import GreedyConfig
from regard.models.catalogue import build_model
from regard.tasks.generation import build_decoding
from regard.tasks.translate.build import cross_attentions
from regard.tasks.translate.guide import (
    AlignmentGuide,
    alignment_loss,
    collate_guided,
    token_links,
)
from regard.tasks.translate.task import TranslateTask
from regard.text.train import train_tokenizer

RECORDS = [
    {"source": "ab c", "target": "C AB"},
    {"source": "c", "target": "C C"},
    {"source": "ab ab c", "target": "AB C AB"},
]
LINES = "0-1 1-0\n\n2-1 0-0 0-2 1-2\n"


def build_guided_task(
    path: Path,
    kind: str = "rnnsearch",
    weight: float = 0.5,
    smoothing: float = 0.0,
    **settings: Any,
) -> TranslateTask:
    """Return a translator of characters with a guide: `ab` is two tokens."""
    path.write_text(LINES)
    texts = [[record[side] for record in RECORDS] for side in ("source", "target")]
    sides = [train_tokenizer("characters", side, 20) for side in texts]
    sizes = {"source_size": sides[0].size, "target_size": sides[1].size}
    model = build_model(kind, {**sizes, "dim": 8, **settings}).double()
    guide = AlignmentGuide(cross_attentions(model), path, weight)
    decoding = build_decoding(GreedyConfig(), max_positions=math.inf)
    return TranslateTask(model, *sides, decoding=decoding, label_smoothing=smoothing, guide=guide)


def linked_examples(task: TranslateTask, max_tokens: int = 256) -> list[Example]:
    assert task.guide is not None
    return list(
        task.guide.examples(
            task.guide.with_links(RECORDS),
            source=task.source,
            target=task.target,
            max_tokens=max_tokens,
        )
    )


def test_all_tokens_of_linked_words_are_linked():
    links = token_links(frozenset({(0, 1), (2, 0)}), [0, 0, 1, None], [0, 1, 1])
    assert {(int(t), int(s)) for t, s in links} == {(1, 0), (1, 1), (2, 0), (2, 1)}
    assert token_links(frozenset(), [0], [0]).shape == (0, 2)


def test_a_batch_holds_equal_shares_of_linked_tokens(tmp_path: Path):
    task = build_guided_task(tmp_path / "links")
    examples = linked_examples(task)
    assert [Example(e.index, e.source, e.target) for e in examples] == list(task.examples(RECORDS))
    batch = collate_guided(examples)
    assert batch.guide is not None
    assert batch.guide.shape == (*batch.target_out.shape, batch.source.shape[1])
    # A space belongs to the word after it: a b | _ c | end, and C | _ A B | end.
    first = [[0, 0, 0.5, 0.5, 0], [0.5, 0.5, 0, 0, 0], [0.5, 0.5, 0, 0, 0], [0.5, 0.5, 0, 0, 0]]
    table = batch.guide[0].tolist()
    assert [row[:5] for row in table[:4]] == first
    assert not batch.guide[0, 4:].any()
    assert not batch.guide[0, :, 4:].any()
    assert not batch.guide[1].any()
    third = batch.guide[2, 4:7]  # _ A B: linked to two words with five tokens
    assert third.shape[0] == 3
    assert set(third.flatten().tolist()) == {0.0, np.float32(0.2)}
    assert collate(list(task.examples(RECORDS))).guide is None
    with pytest.raises(ValueError, match="pair 7 has no links"):
        collate_guided([examples[0], Example(7, [4], [4])])


@pytest.mark.parametrize(
    ("kind", "settings", "layer"),
    [
        ("rnnsearch", {}, "attention"),
        ("luong", {"input_feeding": False}, "attention"),
        ("rnmt", {"heads": 2}, "attention"),
        ("transformer", {"layers": 3, "heads": 2}, "decoder.layers.1.cross_attention"),
        ("transformer", {"layers": 1, "heads": 2}, "decoder.layers.0.cross_attention"),
    ],
)
def test_the_loss_is_that_of_the_equation(
    tmp_path: Path, kind: str, settings: dict[str, Any], layer: str
):
    task = build_guided_task(tmp_path / "links", kind, 0.7, smoothing=0.1, **settings)
    task.model.eval()
    batch = collate_guided(linked_examples(task))
    assert batch.guide is not None
    loss, plain = task.loss(batch, 0), task.training_loss(batch, 0)
    with observe(task.model) as recorded:
        task.training_loss(batch, 0)
    weights, total = recorded.joined()[layer], 0.0
    for b, record in enumerate(RECORDS):
        source_words = task.source.encode(record["source"]).words
        target_words = task.target.encode(record["target"]).words
        links = [tuple(map(int, link.split("-"))) for link in LINES.split("\n")[b].split()]
        for t, j in enumerate(target_words):
            linked = [s for s, i in enumerate(source_words) if (i, j) in links]
            for s in linked:
                heads = weights[b, ..., t, s].reshape(-1).tolist()
                total -= math.log(sum(heads) / len(heads)) / len(linked)
    assert loss.count == plain.count
    assert total > 1
    # The guide is float32.
    torch.testing.assert_close(loss.total, plain.total + 0.7 * total, rtol=1e-7, atol=0)


def test_the_gradient_of_the_guide_reaches_the_keys(tmp_path: Path):
    """Compare the gradient of the alignment loss with a finite difference."""
    task = build_guided_task(tmp_path / "links", "transformer", 1.0, layers=2, heads=2, dropout=0.0)
    batch = collate_guided(linked_examples(task))
    model = task.model
    key = model.decoder.layers[0].cross_attention.to_key.weight

    def gradient(loss: torch.Tensor) -> torch.Tensor:
        return torch.autograd.grad(loss, key)[0]

    guided, plain = task.loss(batch, 0), task.training_loss(batch, 0)
    difference = gradient(guided.total) - gradient(plain.total)
    assert difference.abs().max() > 1e-4
    step, index = 1e-5, key.flatten().shape[0] // 2
    values = []
    for sign in (1, -1):
        with torch.no_grad():
            key.view(-1)[index] += sign * step
            values.append((task.loss(batch, 0).total - task.training_loss(batch, 0).total).item())
            key.view(-1)[index] -= sign * step
    expected = (values[0] - values[1]) / (2 * step)
    assert difference.flatten()[index].item() == pytest.approx(expected, rel=1e-4, abs=1e-7)


def test_a_weight_of_zero_has_a_finite_loss():
    weights = torch.tensor([[[0.0, 1.0]]], requires_grad=True)
    value = alignment_loss(weights, torch.tensor([[[0.5, 0.5]]]))
    value.backward()
    assert weights.grad is not None
    assert torch.isfinite(weights.grad).all()
    assert 13 < value.item() < 14
    half = alignment_loss(
        torch.full((1, 1, 2), 0.5, dtype=torch.bfloat16), torch.tensor([[[0.5, 0.5]]])
    )
    assert half.dtype == torch.float32


def test_bad_alignments(tmp_path: Path):
    task = build_guided_task(tmp_path / "links")
    assert task.guide is not None
    task.guide.check(RECORDS)
    with pytest.raises(ValueError, match=r"links has 3 lines, but the training data 2 pairs"):
        task.guide.check(RECORDS[:2])
    (tmp_path / "links").write_text("0-1 1-0\n0-2\n\n")
    with pytest.raises(ValueError, match=r"links:2: link 0 to 2 is out of range: .* 1 source"):
        linked_examples(task)
    with pytest.raises(ValueError, match="Seq2Seq has no attention to the source"):
        build_guided_task(tmp_path / "links", "seq2seq")
    with pytest.raises(ValueError, match="batch has no guide"):
        task.loss(collate(list(task.examples(RECORDS))), 0)


def test_long_pairs_are_left_out_with_their_links(tmp_path: Path):
    task = build_guided_task(tmp_path / "links")
    examples = linked_examples(task, max_tokens=4)
    assert [example.index for example in examples] == [0, 1]
    assert isinstance(collate_guided(examples), Batch)
