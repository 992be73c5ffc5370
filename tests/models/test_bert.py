"""BERT against its equations in float64, padding, and its published sizes."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from regard.attention.observe import observe
from regard.models.bert import SIZES, Bert
from regard.tasks.loss import cross_entropy

SIZE, DIM, HEADS, LAYERS = 11, 8, 2, 2
IDS = torch.tensor([[3, 5, 4, 6, 2, 10], [6, 7, 2, 0, 0, 0]])
SEGMENTS = torch.tensor([[0, 0, 1, 1, 1, 1], [0, 1, 1, 0, 0, 0]])
VALID = torch.tensor([[True] * 6, [True] * 3 + [False] * 3])


def small_model(**settings: Any) -> Any:
    model = Bert(SIZE, dim=DIM, heads=HEADS, layers=LAYERS, max_positions=6, **settings)
    for weight in model.parameters():
        nn.init.normal_(weight, std=0.5)
    return model.double().eval()


def normed(w: dict[str, Tensor], name: str, x: Tensor) -> Tensor:
    centered = x - x.mean(-1, keepdim=True)
    scaled = centered / (centered.square().mean(-1, keepdim=True) + 1e-12).sqrt()
    return scaled * w[f"{name}.weight"] + w[f"{name}.bias"]


def affine(w: dict[str, Tensor], name: str, x: Tensor) -> Tensor:
    return x @ w[f"{name}.weight"].T + w[f"{name}.bias"]


def gelu(x: Tensor) -> Tensor:
    return x * 0.5 * (1 + torch.erf(x / math.sqrt(2)))


def self_attention(w: dict[str, Tensor], name: str, x: Tensor) -> Tensor:
    q, k, v = (affine(w, f"{name}.to_{what}", x) for what in ("query", "key", "value"))
    wide, read = DIM // HEADS, torch.zeros_like(x)
    for head in range(HEADS):
        mine = slice(head * wide, (head + 1) * wide)
        for t in range(len(x)):
            read[t, mine] = (k[:, mine] @ q[t, mine] / math.sqrt(wide)).softmax(0) @ v[:, mine]
    return affine(w, f"{name}.out", read)


def states_by_equation(w: dict[str, Tensor], ids: Tensor, segments: Tensor) -> Tensor:
    """Return the states of one row without padding."""
    x = w["words.weight"][ids] + w["position.weight"][: len(ids)] + w["segments.weight"][segments]
    x = normed(w, "norm", x)
    for i in range(LAYERS):
        name = f"encoder.layers.{i}"
        x = normed(w, f"{name}.self_norm", x + self_attention(w, f"{name}.self_attention", x))
        inner = affine(w, f"{name}.feed.narrow", gelu(affine(w, f"{name}.feed.widen", x)))
        x = normed(w, f"{name}.feed_norm", x + inner)
    return x


def close(actual: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(actual, expected, rtol=1e-9, atol=1e-10)


@torch.no_grad()
def test_it_is_its_equations():
    model = small_model(pretrain="both")
    encoded, weights = model.encode(IDS, VALID, SEGMENTS), model.state_dict()
    for row, length in enumerate(VALID.sum(1).tolist()):
        x = states_by_equation(weights, IDS[row, :length], SEGMENTS[row, :length])
        close(encoded.states[row, :length], x)
        pooled = affine(weights, "pooler", x[0]).tanh()
        close(encoded.pooled[row], pooled)
        guess = normed(weights, "guess_norm", gelu(affine(weights, "guess", x)))
        logits = guess @ weights["words.weight"].T + weights["words.bias"]
        close(model.logits(model.masked_word_states(encoded.states[row, :length])), logits)
        close(model.following(encoded.pooled[row]), affine(weights, "following", pooled))
    assert encoded.valid is VALID


@pytest.mark.parametrize(("size", "count"), [("base", 109_482_240), ("large", 335_141_888)])
def test_sizes_are_the_published_ones(size, count):
    with torch.device("meta"):
        model = Bert(30_522, **SIZES[size])
    assert sum(weight.numel() for weight in model.parameters()) == count


def test_size_of_the_output_heads():
    plain, heads = (
        sum(weight.numel() for weight in Bert(SIZE, dim=DIM, heads=2, pretrain=p).parameters())
        for p in ("none", "both")
    )
    # guess, its norm, bias of words, following
    assert heads - plain == (DIM * DIM + DIM) + 2 * DIM + SIZE + (2 * DIM + 2)


@pytest.mark.parametrize("std", [0.02, 0.1])
def test_initial_weights_have_the_given_std(std):
    model = Bert(500, dim=64, heads=2, layers=2, max_positions=64, pretrain="both", init_std=std)
    for name, weight in model.named_parameters():
        if weight.ndim == 2 and weight.numel() > 1000:
            assert weight.std().item() == pytest.approx(std, rel=0.1), name


def test_padding_changes_nothing():
    model = small_model()
    expected = model.encode(IDS, VALID, SEGMENTS)
    changed_ids = torch.where(VALID, IDS, 9)
    encoded = model.encode(changed_ids, VALID, SEGMENTS)
    close(encoded.states[VALID], expected.states[VALID])
    short = model.encode(IDS[1:, :3], VALID[1:, :3], SEGMENTS[1:, :3])
    close(short.states[0], expected.states[1, :3])
    close(short.pooled[0], expected.pooled[1])


def test_default_segment_is_the_first():
    model = small_model()
    first = model.encode(IDS, VALID, torch.zeros_like(IDS))
    close(model.encode(IDS, VALID).states, first.states)
    assert not torch.allclose(model.encode(IDS, VALID, SEGMENTS).states, first.states)


def test_masked_word_loss_uses_chosen_positions_only():
    model = small_model(pretrain="masked").train()
    chosen = torch.tensor([[False, True, False, False, True, False], [True] + [False] * 5])
    states = model.encode(IDS, VALID).states
    loss = cross_entropy(model.output, model.masked_word_states(states), IDS, chosen)
    assert loss.count == 3
    logits = model.logits(model.masked_word_states(states[chosen]))
    close(loss.total, nn.functional.cross_entropy(logits, IDS[chosen], reduction="sum"))


def test_parts_may_be_left_out():
    model = small_model(segments=0, pooler=False)
    assert (model.width, model.pooled_width) == (DIM, None)
    assert model.encode(IDS, VALID).pooled is None
    assert not {"segments.weight", "pooler.weight", "words.bias"} & set(model.state_dict())
    with observe(model) as recorded:
        model.encode(IDS, VALID)
    assert [weights.shape for weights in recorded.joined().values()] == [(2, HEADS, 6, 6)] * LAYERS


def test_invalid_arguments_are_rejected(unchecked):
    model = small_model(segments=0)
    with pytest.raises(ValueError, match="segments must be None for a model"):
        model.encode(IDS, VALID, SEGMENTS)
    with pytest.raises(ValueError, match="no head for masked words; set pretrain='masked'"):
        model.masked_word_states(torch.zeros(1, DIM))
    with pytest.raises(ValueError, match="ids have 7 positions, but max_positions is 6"):
        model.encode(torch.zeros(1, 7, dtype=torch.long), torch.ones(1, 7, dtype=torch.bool))
    with pytest.raises(ValueError, match="valid must be boolean"):
        model.encode(IDS, VALID.long())
    with pytest.raises(ValueError, match="pretrain must be 'none', 'masked' or 'both'"):
        Bert(SIZE, pretrain="all")
    with pytest.raises(ValueError, match="pretrain='both' needs pooler=True"):
        Bert(SIZE, pretrain="both", pooler=False)
