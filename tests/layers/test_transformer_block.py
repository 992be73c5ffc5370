"""The block against loops from the equations and torch's own layers, and the laws of its cache."""

import math
from collections.abc import Callable, Iterator

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.autograd import gradcheck

from regard.attention.core import Attention
from regard.attention.masks import causal
from regard.attention.multihead import MultiHead
from regard.attention.observe import observe
from regard.attention.scores import Additive
from regard.layers.activations import tanh_gelu
from regard.layers.positions import RelativeBias, RotaryPositions
from regard.layers.transformer_block import FeedForward, TransformerBlock, TransformerStack

DOUBLE = torch.float64
B, T, K, DIM, HEADS, HIDDEN, MEMORY = 3, 6, 5, 8, 2, 12, 7
ACTIVATIONS = {"relu": F.relu, "gelu": F.gelu, "tanh_gelu": tanh_gelu, "tanh": torch.tanh}
VARIANTS: dict[str, Callable[[], TransformerBlock]] = {
    "post": lambda: TransformerBlock(DIM, HEADS, HIDDEN),
    "pre": lambda: TransformerBlock(DIM, HEADS, HIDDEN, norm="pre", activation=tanh_gelu),
    "rotary": lambda: TransformerBlock(DIM, HEADS, HIDDEN, norm="pre", rotary=RotaryPositions()),
    "relative": lambda: TransformerBlock(
        DIM, HEADS, HIDDEN, relative=RelativeBias(HEADS, buckets=4, max_distance=3)
    ),
    "grouped": lambda: TransformerBlock(DIM, 4, HIDDEN, groups=2, activation=F.gelu),
    "additive": lambda: TransformerBlock(
        DIM, HEADS, HIDDEN, attention=lambda: Attention(Additive(DIM // 2, DIM // 2, 5))
    ),
    "cross": lambda: TransformerBlock(DIM, HEADS, HIDDEN, memory_dim=MEMORY),
    "cross_pre": lambda: TransformerBlock(
        DIM, HEADS, HIDDEN, memory_dim=MEMORY, norm="pre", rotary=RotaryPositions()
    ),
}


def build_block(name: str) -> TransformerBlock:
    """Build a block in float64 with random norms."""
    return with_random_norms(VARIANTS[name]().double())


def with_random_norms(module):
    for part in module.modules():
        if isinstance(part, nn.LayerNorm):
            nn.init.normal_(part.weight, 1, 0.3)
            nn.init.normal_(part.bias, 0, 0.3)
    return module


def valid_up_to(*lengths: int, slots: int) -> Tensor:
    return torch.arange(slots) < torch.tensor(lengths)[:, None]


def numbers(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=DOUBLE)


def build_memory(
    block: TransformerBlock, states: Tensor | None = None, valid: Tensor | None = None
):
    """Return a memory for the block, or None if it has none."""
    if block.cross_attention is None:
        return None
    return block.remember(numbers(B, K, MEMORY) if states is None else states, valid)


# The equations, in loops -------------------------------------------------------------------------


def affine(layer: nn.Linear, x: Tensor) -> Tensor:
    return torch.stack(
        [sum(w * v for w, v in zip(row, x, strict=True)) for row in layer.weight]
    ) + (layer.bias)


def normed(norm: nn.LayerNorm, x: Tensor) -> Tensor:
    mean = sum(x) / len(x)
    variance = sum((v - mean) ** 2 for v in x) / len(x)
    return (x - mean) / (variance + norm.eps) ** 0.5 * norm.weight + norm.bias


def attention_by_loop(
    heads: MultiHead, query: Tensor, slots: list[Tensor], may: Callable[[int], bool]
) -> Tensor:
    """Vaswani et al. 2017, 3.2, for one query."""
    width = heads.head_dim
    query_vector = affine(heads.to_query, query)
    keys = [affine(heads.to_key, slot) for slot in slots]
    values = [affine(heads.to_value, slot) for slot in slots]
    read = []
    for head in range(heads.heads):
        part = slice(head * width, (head + 1) * width)
        mass = {
            s: math.exp((query_vector[part] @ keys[s][part]).item() / math.sqrt(width))
            for s in range(len(slots))
            if may(s)
        }
        read.append(sum(m * values[s][part] for s, m in mass.items()) / sum(mass.values()))
    return affine(heads.out, torch.cat(read))


def by_loop(
    block: TransformerBlock, states: Tensor, valid: Tensor, memory: Tensor, real: Tensor
) -> Tensor:
    """Run a causal block over one sequence, position by position."""

    def sublayer(norm: nn.LayerNorm, rows: list[Tensor], change: Callable) -> list[Tensor]:
        if block.is_pre_norm:
            inner = [normed(norm, x) for x in rows]
            return [x + change(t, inner) for t, x in enumerate(rows)]
        return [normed(norm, x + change(t, rows)) for t, x in enumerate(rows)]

    def around(t: int, inner: list[Tensor]) -> Tensor:
        return attention_by_loop(
            block.self_attention, inner[t], inner, lambda s: s <= t and bool(valid[s])
        )

    def across(t: int, inner: list[Tensor]) -> Tensor:
        assert block.cross_attention is not None
        return attention_by_loop(
            block.cross_attention, inner[t], list(memory), lambda s: bool(real[s])
        )

    def feed(t: int, inner: list[Tensor]) -> Tensor:
        hidden = block.feed.activation(affine(block.feed.widen, inner[t]))
        return affine(block.feed.narrow, hidden)

    rows = sublayer(block.self_norm, list(states), around)
    if block.cross_norm is not None:
        rows = sublayer(block.cross_norm, rows, across)
    return torch.stack(sublayer(block.feed_norm, rows, feed))


@pytest.mark.parametrize("name", ["post", "pre", "cross"])
def test_block_is_the_equation(name: str):
    block = build_block(name)
    states, memory = numbers(2, 4, DIM), numbers(2, 3, MEMORY)
    valid, real = valid_up_to(4, 2, slots=4), valid_up_to(1, 3, slots=3)
    with torch.no_grad():
        got, slots = block(states, valid, causal, memory=build_memory(block, memory, real))
        rows = zip(states, valid, memory, real, strict=True)
        expected = torch.stack([by_loop(block, *row) for row in rows])
    torch.testing.assert_close(got, expected, rtol=1e-10, atol=1e-12)
    assert slots.slots == 4


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_feed_forward_is_the_equation(name: str):
    by_hand = {
        "relu": lambda x: max(x, 0.0),
        "gelu": lambda x: x * 0.5 * (1 + math.erf(x / math.sqrt(2))),
        "tanh_gelu": lambda x: (
            0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
        ),
        "tanh": math.tanh,
    }[name]
    feed = FeedForward(3, 4, activation=ACTIVATIONS[name]).double()
    x = 2 * numbers(5, 3)
    for row, got in zip(x, feed(x), strict=True):
        hidden = torch.tensor([by_hand(v.item()) for v in affine(feed.widen, row)], dtype=DOUBLE)
        torch.testing.assert_close(got, affine(feed.narrow, hidden), rtol=1e-10, atol=1e-12)


# torch.nn ----------------------------------------------------------------------------------------


def pairs(ours: TransformerBlock, theirs: nn.Module) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield pairs of our parameters and those of a torch layer."""
    attentions = [(ours.self_attention, theirs.self_attn)]
    norms = [(ours.self_norm, theirs.norm1), (ours.feed_norm, theirs.norm2)]
    if ours.cross_attention is not None:
        attentions.append((ours.cross_attention, theirs.multihead_attn))
        norms[1:] = [(ours.cross_norm, theirs.norm2), (ours.feed_norm, theirs.norm3)]
    for mine, other in attentions:
        maps = (mine.to_query, mine.to_key, mine.to_value)
        yield torch.cat([m.bias for m in maps]), other.in_proj_bias
        if other.in_proj_weight is not None:
            yield torch.cat([m.weight for m in maps]), other.in_proj_weight
        yield mine.out.weight, other.out_proj.weight
        yield mine.out.bias, other.out_proj.bias
    for mine, other in [
        *norms,
        (ours.feed.widen, theirs.linear1),
        (ours.feed.narrow, theirs.linear2),
    ]:
        yield mine.weight, other.weight
        yield mine.bias, other.bias


def copy_weights(ours: nn.Module, theirs: nn.Module) -> None:
    with torch.no_grad():
        for mine, other in pairs(ours, theirs):
            other.copy_(mine)


def torch_layer(kind: type, pre: bool, activation: Callable) -> nn.Module:
    return kind(
        DIM, HEADS, HIDDEN, 0.0, activation, 1e-4, batch_first=True, norm_first=pre, dtype=DOUBLE
    )


@pytest.mark.parametrize("pre", [False, True])
@pytest.mark.parametrize("activation", [F.relu, F.gelu])
@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("mask", [None, causal])
def test_is_torchs_encoder_layer(pre: bool, activation: Callable, padded: bool, mask):
    norm = "pre" if pre else "post"
    ours = TransformerBlock(
        DIM, HEADS, HIDDEN, norm=norm, activation=activation, norm_eps=1e-4
    ).double()
    theirs = torch_layer(nn.TransformerEncoderLayer, pre, activation)
    copy_weights(with_random_norms(ours), theirs)
    states, valid = numbers(B, T, DIM), valid_up_to(T, 3, 1, slots=T)
    future = torch.ones(T, T, dtype=torch.bool).triu(1) if mask else None
    got, _ = ours(states, valid if padded else None, mask)
    expected = theirs(states, future, ~valid if padded else None)
    real = valid if padded else torch.ones_like(valid)
    torch.testing.assert_close(got[real], expected[real], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("pre", [False, True])
@pytest.mark.parametrize("activation", [F.relu, F.gelu])
@pytest.mark.parametrize("padded", [False, True])
def test_is_torchs_decoder_layer(pre: bool, activation: Callable, padded: bool):
    norm = "pre" if pre else "post"
    ours = TransformerBlock(
        DIM, HEADS, HIDDEN, norm=norm, activation=activation, norm_eps=1e-4, memory_dim=DIM
    ).double()
    theirs = torch_layer(nn.TransformerDecoderLayer, pre, activation)
    copy_weights(with_random_norms(ours), theirs)
    states, valid = numbers(B, T, DIM), valid_up_to(T, 3, 1, slots=T)
    source, real = numbers(B, K, DIM), valid_up_to(2, K, 1, slots=K)
    future = torch.ones(T, T, dtype=torch.bool).triu(1)
    memory = ours.remember(source, real if padded else None)
    got, _ = ours(states, valid if padded else None, causal, memory=memory)
    expected = theirs(
        states,
        source,
        future,
        tgt_key_padding_mask=~valid if padded else None,
        memory_key_padding_mask=~real if padded else None,
    )
    compared = valid if padded else torch.ones_like(valid)
    torch.testing.assert_close(got[compared], expected[compared], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("pre", [False, True])
def test_stack_is_torchs_decoder_with_its_final_norm(pre: bool):
    norm = "pre" if pre else "post"
    ours = with_random_norms(
        TransformerStack(
            TransformerBlock(DIM, HEADS, HIDDEN, norm=norm, memory_dim=DIM, norm_eps=1e-4)
            for _ in range(3)
        )
    ).double()
    layer = torch_layer(nn.TransformerDecoderLayer, pre, F.relu)
    final = nn.LayerNorm(DIM, 1e-4, dtype=DOUBLE) if pre else None
    theirs = nn.TransformerDecoder(layer, 3, final)
    for mine, other in zip(ours.layers, theirs.layers, strict=True):
        copy_weights(mine, other)
    assert (ours.norm is not None) == pre
    if final is not None and ours.norm is not None:
        theirs.norm.load_state_dict(ours.norm.state_dict())
    states, source = numbers(B, T, DIM), numbers(B, K, DIM)
    got, _ = ours(states, mask=causal, memory=ours.remember(source))
    future = torch.ones(T, T, dtype=torch.bool).triu(1)
    torch.testing.assert_close(got, theirs(states, source, future), rtol=1e-10, atol=1e-12)


# Laws --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", VARIANTS)
def test_gradients(name: str, unchecked: None):
    block = build_block(name)
    states, valid = numbers(2, 2, DIM).requires_grad_(), valid_up_to(2, 1, slots=2)
    if block.cross_attention is None:
        assert gradcheck(lambda s: block(s, valid, causal)[0], (states,))
        return
    source, real = numbers(2, 2, MEMORY).requires_grad_(), valid_up_to(1, 2, slots=2)

    def run(states: Tensor, source: Tensor) -> Tensor:
        return block(states, valid, causal, memory=block.remember(source, real))[0]

    assert gradcheck(run, (states, source))


@settings(max_examples=4)
@given(st.data())
@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("grad", [False, True])
def test_stepping_with_a_cache_equals_one_pass(name: str, grad: bool, data: st.DataObject):
    block = build_block(name)
    cuts = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=5))
    lengths = [data.draw(st.integers(1, sum(cuts))) for _ in range(B)]
    states, valid = numbers(B, sum(cuts), DIM), valid_up_to(*lengths, slots=sum(cuts))
    with torch.set_grad_enabled(grad):
        memory = build_memory(block)
        full, all_slots = block(states, valid, causal, memory=memory)
        past, steps = None, []
        for piece, real in zip(states.split(cuts, 1), valid.split(cuts, 1), strict=True):
            out, past = block(piece, real, causal, past, memory)
            steps.append(out)
    torch.testing.assert_close(torch.cat(steps, 1)[valid], full[valid], rtol=1e-10, atol=1e-12)
    assert past is not None
    torch.testing.assert_close(past.keys, all_slots.keys, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_stepping_a_stack_equals_one_pass(norm: str):
    stack = TransformerStack(
        TransformerBlock(DIM, HEADS, HIDDEN, norm=norm, memory_dim=MEMORY, rotary=RotaryPositions())
        for _ in range(2)
    ).double()
    states, memory = numbers(B, T, DIM), stack.remember(numbers(B, K, MEMORY))
    with torch.no_grad():
        full, _ = stack(states, mask=causal, memory=memory)
        past = None
        for t in range(T):
            out, past = stack(states[:, t : t + 1], mask=causal, past=past, memory=memory)
            torch.testing.assert_close(out, full[:, t : t + 1], rtol=1e-10, atol=1e-12)
    assert [slots.slots for slots in past] == [T, T]


@pytest.mark.parametrize("name", VARIANTS)
def test_the_future_changes_nothing(name: str):
    block = build_block(name).float()
    states, memory = torch.randn(B, T, DIM), build_memory(block, torch.randn(B, K, MEMORY))
    full, _ = block(states, mask=causal, memory=memory)
    for now in range(T - 1):
        changed_states = states.clone()
        changed_states[:, now + 1 :] = 100 * torch.randn(B, T - now - 1, DIM)
        changed, _ = block(changed_states, mask=causal, memory=memory)
        assert torch.equal(changed[:, : now + 1], full[:, : now + 1])
        assert not torch.equal(changed[:, now + 1 :], full[:, now + 1 :])
        states.requires_grad_()
        out, _ = block(states, mask=causal, memory=memory)
        (slope,) = torch.autograd.grad(out[:, now].square().sum(), states)
        assert (slope[:, now + 1 :] == 0).all()
        assert (slope[:, : now + 1] != 0).any(-1).all()
        states = states.detach()


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("mask", [None, causal])
@pytest.mark.parametrize("padding", [1, 9])
def test_padding_length_is_irrelevant(name: str, mask, padding: int):
    block = build_block(name)
    states, source = numbers(B, T, DIM), numbers(B, K, MEMORY)
    full, _ = block(states, mask=mask, memory=build_memory(block, source))
    padded = torch.cat([states, 100 * numbers(B, padding, DIM)], 1)
    valid = valid_up_to(T, T, T, slots=T + padding)
    padded_source = torch.cat([source, 100 * numbers(B, padding, MEMORY)], 1)
    memory = build_memory(block, padded_source, valid_up_to(K, K, K, slots=K + padding))
    got, _ = block(padded, valid, mask, memory=memory)
    torch.testing.assert_close(got[:, :T], full, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", VARIANTS)
def test_padding_on_the_left_is_irrelevant_too(name: str):
    """Positions in a block are relative or absent, so a common shift changes nothing."""
    block = build_block(name)
    states, memory = numbers(B, T, DIM), build_memory(block)
    full, _ = block(states, mask=causal, memory=memory)
    padded = torch.cat([100 * numbers(B, 4, DIM), states], 1)
    valid = valid_up_to(4, 4, 4, slots=T + 4).logical_not()
    got, _ = block(padded, valid, causal, memory=memory)
    torch.testing.assert_close(got[:, 4:], full, rtol=1e-10, atol=1e-12)
    assert got.isfinite().all()  # also where no slot is allowed


@pytest.mark.parametrize("name", ["post", "pre"])
def test_without_positions_the_order_of_the_states_is_free(name: str):
    block, order = build_block(name), torch.randperm(T)
    states = numbers(B, T, DIM)
    torch.testing.assert_close(block(states[:, order])[0], block(states)[0][:, order])


@pytest.mark.parametrize("name", ["rotary", "relative"])
def test_with_positions_it_is_not(name: str):
    block, states = build_block(name), numbers(B, T, DIM)
    with torch.no_grad():
        if isinstance(block.self_attention.relative, RelativeBias):
            nn.init.normal_(block.self_attention.relative.weight)
    flipped = block(states.flip(1))[0].flip(1)
    assert not torch.allclose(flipped, block(states)[0], atol=1e-3)


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, DOUBLE])
def test_stays_finite_and_keeps_the_dtype(name: str, dtype: torch.dtype):
    block = VARIANTS[name]().to(dtype)
    states = (30 * torch.randn(B, T, DIM)).to(dtype).requires_grad_()
    memory = build_memory(block, torch.randn(B, K, MEMORY).to(dtype), valid_up_to(K, 1, 0, slots=K))
    out, slots = block(states, valid_up_to(T, 1, 0, slots=T), causal, memory=memory)
    out.float().square().sum().backward()
    assert out.dtype == dtype == slots.keys.dtype
    assert out.isfinite().all()
    assert states.grad is not None
    assert states.grad.isfinite().all()
    assert all(p.grad is None or p.grad.isfinite().all() for p in block.parameters())


def test_groups_make_both_memories_smaller():
    block = TransformerBlock(DIM, 4, HIDDEN, groups=2, memory_dim=MEMORY)
    memory = block.remember(torch.randn(B, K, MEMORY))
    _, past = block(torch.randn(B, T, DIM), memory=memory)
    assert past.keys.shape == (B, 2, T, 2)
    assert memory.keys.shape == (B, 2, K, 2)


# Dropout, observe --------------------------------------------------------------------------------


def test_dropout_acts_on_what_a_sublayer_adds():
    block = TransformerBlock(DIM, HEADS, HIDDEN, norm="pre", dropout=0.25, attention_dropout=0.0)
    nn.init.zeros_(block.feed.narrow.weight)
    nn.init.zeros_(block.feed.narrow.bias)
    states = torch.randn(200, T, DIM)
    kept = block.eval()(states)[0] - states
    added = block.train()(states)[0] - states
    dropped = added == 0
    assert dropped.float().mean().item() == pytest.approx(0.25, abs=0.03)
    torch.testing.assert_close(added[~dropped], kept[~dropped] / 0.75, atol=1e-5, rtol=1e-4)


def test_each_dropout_has_its_place():
    silent = torch.randn(B, T, DIM)
    for setting in ("dropout", "attention_dropout", "hidden_dropout"):
        block = TransformerBlock(DIM, HEADS, HIDDEN, **{setting: 0.5})
        assert not torch.equal(block(silent)[0], block(silent)[0])
        block.eval()
        assert torch.equal(block(silent)[0], block(silent)[0])
    assert TransformerBlock(DIM, HEADS, HIDDEN, dropout=0.3).self_attention.attention.dropout == 0.3
    block_with_memory = TransformerBlock(
        DIM, HEADS, HIDDEN, dropout=0.3, attention_dropout=0.1, memory_dim=4
    )
    assert block_with_memory.cross_attention is not None
    assert (
        block_with_memory.self_attention.attention.dropout
        == block_with_memory.cross_attention.attention.dropout
        == 0.1
    )


def test_observe_names_each_attention_and_changes_nothing():
    stack = TransformerStack(
        TransformerBlock(DIM, HEADS, HIDDEN, memory_dim=MEMORY) for _ in range(2)
    ).eval()
    states, memory = torch.randn(B, T, DIM), stack.remember(torch.randn(B, K, MEMORY))
    before, _ = stack(states, mask=causal, memory=memory)
    with observe(stack) as recorded:
        during, _ = stack(states, mask=causal, memory=memory)
    assert torch.equal(before, during)
    names = [f"layers.{i}.{kind}_attention" for i in range(2) for kind in ("self", "cross")]
    assert list(recorded) == names
    assert [recorded[name][0].shape[-1] for name in names] == [T, K, T, K]


# Bad input ---------------------------------------------------------------------------------------


def test_bad_sizes(unchecked: None):
    with pytest.raises(ValueError, match=r"^dim 8 is not a multiple of heads 3$"):
        TransformerBlock(8, 3, 12)
    with pytest.raises(ValueError, match=r"^heads 4 is not a multiple of groups 3$"):
        TransformerBlock(8, 4, 12, groups=3)
    with pytest.raises(ValueError, match=r"^norm must be 'post' or 'pre', not 'both'$"):
        TransformerBlock(8, 2, 12, norm="both")
    with pytest.raises(ValueError, match=r"^dropout must be in \[0, 1\), not 1\.0$"):
        TransformerBlock(8, 2, 12, dropout=1.0)
    with pytest.raises(ValueError, match=r"^hidden_dim must be positive, not 0$"):
        TransformerBlock(8, 2, 0)
    with pytest.raises(
        ValueError, match=r"^attention_dropout \(0\.\d+\) has no effect on a custom attention"
    ):
        TransformerBlock(
            8, 2, 12, attention=lambda: Attention(Additive(4, 4, 4)), attention_dropout=0.1
        )
    with pytest.raises(ValueError, match=r"^blocks is empty"):
        TransformerStack([])


def test_bad_inputs(unchecked: None):
    plain, cross = (
        TransformerBlock(DIM, HEADS, HIDDEN),
        TransformerBlock(DIM, HEADS, HIDDEN, memory_dim=MEMORY),
    )
    states, memory = torch.zeros(B, T, DIM), cross.remember(torch.zeros(B, K, MEMORY))
    for shape in ([B, T, 9], [T, DIM], [B, 1, T, DIM]):
        got = str(shape)[1:-1]
        with pytest.raises(ValueError, match=rf"^states must be .*positions, 8\], not \[{got}\]$"):
            plain(torch.zeros(shape))
    with pytest.raises(ValueError, match=r"^states must be .*positions, 7\], not \[3, 6, 8\]$"):
        cross.remember(states)
    for block in (plain, TransformerBlock(DIM, HEADS, HIDDEN, norm="pre")):
        with pytest.raises(ValueError, match=r"^states must be floating point, not torch\.int64$"):
            block(states.long())
        with pytest.raises(ValueError, match=r"^states must be torch\.float32 like the weights"):
            block(states.double())
    with pytest.raises(ValueError, match=r"^states must be torch\.float32 like the weights"):
        cross.remember(torch.zeros(B, K, MEMORY).double())
    with pytest.raises(ValueError, match=r"^memory is missing"):
        cross(states)
    with pytest.raises(ValueError, match=r"^memory needs a block with memory_dim"):
        plain(states, memory=memory)
    with pytest.raises(ValueError, match=r"^remember needs a block with memory_dim"):
        plain.remember(states)
    with pytest.raises(ValueError, match=r"^valid has shape"):
        plain(states, torch.ones(B, T + 1, dtype=torch.bool))
    with pytest.raises(ValueError, match=r"^valid must be boolean"):
        plain(states, torch.ones(B, T))
    with pytest.raises(ValueError, match=r"NaN"):
        plain(torch.full((B, T, DIM), math.nan))
    with pytest.raises(ValueError, match=r"^memory has no slots"):
        plain(torch.zeros(B, 0, DIM))
    with pytest.raises(ValueError, match=r"^later has keys"):
        plain(states, past=plain(torch.zeros(B + 1, 1, DIM))[1])
