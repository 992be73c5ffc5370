"""Multi-head attention against torch's; pooling; the cache."""

import pytest
import torch
from torch import Tensor, nn

from regard.attention.core import Attention
from regard.attention.masks import causal
from regard.attention.multihead import AttentionPooling, MultiHead
from regard.attention.normalizers import sparsemax
from regard.attention.observe import observe
from regard.attention.scores import Additive, Dot, General, LocationScore, Salience, ScaledDot
from regard.attention.windows import PredictiveWindow

F64 = torch.float64
DIM, HEADS = 16, 4
KINDS = {
    "scaled_dot": lambda: Attention(ScaledDot()),
    "additive": lambda: Attention(Additive(4, 4, 3, heads=HEADS)),
    "additive, shared": lambda: Attention(Additive(4, 4, 3)),
    "general": lambda: Attention(General(4, 4)),
    "location": lambda: Attention(LocationScore(4, 20)),
    "sparse": lambda: Attention(Dot(), sparsemax),
    "local-p": lambda: Attention(Dot(), window=PredictiveWindow(4, 3)),
}


def lengths(*real: int, slots: int = 7) -> Tensor:
    return torch.arange(slots) < torch.tensor(real)[:, None]


@pytest.mark.parametrize("memory_dim", [DIM, 10])
@pytest.mark.parametrize("masked", [False, True])
def test_multihead_is_torchs(memory_dim: int, masked: bool):
    """Compare output and weights of each head, with equal parameters."""
    ours = MultiHead(Attention(ScaledDot()), DIM, HEADS, memory_dim=memory_dim).to(F64)
    theirs = nn.MultiheadAttention(
        DIM, HEADS, batch_first=True, kdim=memory_dim, vdim=memory_dim, dtype=F64
    )
    with torch.no_grad():
        parts = [ours.to_query, ours.to_key, ours.to_value]
        theirs.in_proj_bias.copy_(torch.cat([p.bias for p in parts]))
        if memory_dim == DIM:
            theirs.in_proj_weight.copy_(torch.cat([p.weight for p in parts]))
        else:
            theirs.q_proj_weight.copy_(ours.to_query.weight)
            theirs.k_proj_weight.copy_(ours.to_key.weight)
            theirs.v_proj_weight.copy_(ours.to_value.weight)
        theirs.out_proj.weight.copy_(ours.out.weight)
        theirs.out_proj.bias.copy_(ours.out.bias)
    query, states = torch.randn(3, 7, DIM, dtype=F64), torch.randn(3, 7, memory_dim, dtype=F64)
    valid = lengths(7, 4, 1)
    with observe(ours) as recorded:
        actual = ours(query, ours.remember(states, valid), causal if masked else None)
    expected, weights = theirs(
        query,
        states,
        states,
        key_padding_mask=~valid,
        attn_mask=torch.ones(7, 7).triu(1).bool() if masked else None,
        average_attn_weights=False,
    )
    torch.testing.assert_close(actual, expected, rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(recorded["attention"][0], weights, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_each_head_is_a_separate_attention(kind: str):
    """Compare each head with one attention that has its slice of all parameters."""
    many = MultiHead(KINDS[kind](), DIM, HEADS).to(F64)
    query, states = torch.randn(2, 3, DIM, dtype=F64), torch.randn(2, 7, DIM, dtype=F64)
    valid = lengths(7, 5)
    contexts = []
    for head in range(HEADS):
        part = slice(4 * head, 4 * head + 4)
        head_attention = KINDS["additive, shared" if kind == "additive" else kind]().to(F64)
        with torch.no_grad():
            for name, parameter in head_attention.named_parameters():
                mine = many.attention.get_parameter(name)
                if mine.shape != parameter.shape:
                    mine = mine[head].mT if name.endswith("weight") else mine[head]
                parameter.copy_(mine)
        memory = head_attention.remember(
            many.to_key(states)[..., part], valid, many.to_value(states)[..., part]
        )
        contexts.append(head_attention(many.to_query(query)[..., part], memory))
    want = many.out(torch.cat(contexts, -1))
    torch.testing.assert_close(many(query, many.remember(states, valid)), want)


@pytest.mark.parametrize("groups", [4, 2, 1])
@pytest.mark.parametrize("kind", ["scaled_dot", "additive, shared", "sparse"])
def test_cached_steps_are_the_full_pass(kind: str, groups: int):
    heads = MultiHead(KINDS[kind](), DIM, HEADS, groups=groups).to(F64).eval()
    states, valid = torch.randn(3, 7, DIM, dtype=F64), lengths(7, 4, 1)
    with torch.no_grad():
        full = heads(states, heads.remember(states, valid), causal)
        memory = heads.remember(states[:, :2], valid[:, :2])
        steps = [heads(states[:, :2], memory, causal)]
        for t in range(2, 7):
            new = slice(t, t + 1)
            memory = memory.append(heads.remember(states[:, new], valid[:, new], start=t))
            steps.append(heads(states[:, t : t + 1], memory, causal))
    torch.testing.assert_close(torch.cat(steps, 1), full)
    assert memory.values.shape == (3, groups, 7, 4)


def test_shared_key_heads_are_repeated_ones():
    shared = MultiHead(Attention(ScaledDot()), DIM, HEADS, groups=2).to(F64)
    full = MultiHead(Attention(ScaledDot()), DIM, HEADS).to(F64)
    with torch.no_grad():
        for name in ("to_query", "out"):
            full.get_submodule(name).load_state_dict(shared.get_submodule(name).state_dict())
        for name in ("to_key", "to_value"):
            few, many = shared.get_submodule(name), full.get_submodule(name)
            many.weight.copy_(few.weight.view(2, 4, DIM).repeat_interleave(2, 0).flatten(0, 1))
            many.bias.copy_(few.bias.view(2, 4).repeat_interleave(2, 0).flatten())
    states = torch.randn(2, 5, DIM, dtype=F64)
    have = shared(states, shared.remember(states), causal)
    torch.testing.assert_close(have, full(states, full.remember(states), causal))


def test_a_relative_bias_and_another_bias_add_up():
    def relative(queries: int, slots: int, start: int) -> Tensor:
        steps = torch.arange(slots) - torch.arange(start, start + queries)[:, None]
        return -steps.abs().to(F64).expand(HEADS, -1, -1)

    heads = MultiHead(Attention(ScaledDot()), DIM, HEADS, relative=relative).to(F64)
    plain = MultiHead(Attention(ScaledDot()), DIM, HEADS).to(F64)
    plain.load_state_dict(heads.state_dict())
    states, bias = torch.randn(2, 5, DIM, dtype=F64), torch.randn(2, 1, 3, 5, dtype=F64)
    memory = heads.remember(states)
    have = heads(states[:, 2:], memory, causal, bias)
    want = plain(states[:, 2:], memory, causal, bias + relative(3, 5, 2))
    torch.testing.assert_close(have, want)


def test_rotary_uses_the_position_of_each_key_and_query():
    def scale_by_position(x: Tensor, start: int) -> Tensor:
        return x * 2.0 ** torch.arange(start, start + x.shape[-2], dtype=x.dtype)[:, None]

    heads = MultiHead(Attention(ScaledDot()), DIM, HEADS, rotary=scale_by_position).to(F64)
    states = torch.randn(1, 5, DIM, dtype=F64)
    memory = heads.remember(states[:, :2]).append(heads.remember(states[:, 2:], start=2))
    query, keys = (
        heads.split_heads(heads.to_query(states[:, 3:])),
        heads.split_heads(heads.to_key(states)),
    )
    energy = scale_by_position(query, 3) @ scale_by_position(keys, 0).mT / 2
    with observe(heads) as recorded:
        heads(states[:, 3:], memory)
    torch.testing.assert_close(recorded["attention"][0], energy.softmax(-1))


def test_pooling_is_yangs_equation():
    """u_t = tanh(W h_t + b),  a = softmax(u_t . u),  s = sum a h: eq. 5-7, for each real word."""
    pool = AttentionPooling(Attention(Salience(6, 5)), 5).to(F64)
    states, valid = torch.randn(2, 7, 6, dtype=F64), lengths(7, 3)
    pooled = pool(states, valid)
    assert pooled.shape == (2, 6)
    for b, real in enumerate((7, 3)):
        hidden = pool.attention.score.of_key
        keys = (states[b, :real] @ hidden.weight.mT + hidden.bias).tanh()
        shares = (keys @ pool.query[0]).exp()
        want = (shares[:, None] / shares.sum() * states[b, :real]).sum(0)
        torch.testing.assert_close(pooled[b], want, rtol=1e-10, atol=1e-12)


def test_pooling_by_several_queries_over_any_score():
    pool = AttentionPooling(Attention(Additive(3, 6, 5)), 3, queries=2).to(F64)
    states = torch.randn(2, 7, 6, dtype=F64)
    memory = pool.attention.remember(states)
    want = [pool.attention(pool.query[i].expand(2, 1, -1), memory).squeeze(1) for i in range(2)]
    torch.testing.assert_close(pool(states), torch.cat(want, -1))


@pytest.mark.usefixtures("unchecked")
class TestBadInput:
    @pytest.mark.parametrize(
        ("build", "message"),
        [
            (lambda: MultiHead(Attention(Dot()), 10, 4), "dim 10 is not a multiple of heads 4"),
            (lambda: MultiHead(Attention(Dot()), 8, 0), "heads must be positive, not 0"),
            (
                lambda: MultiHead(Attention(Dot()), 8, 4, groups=3),
                "heads 4 is not a multiple of groups 3",
            ),
            (lambda: AttentionPooling(Attention(Dot()), 0), "query_dim must be positive"),
        ],
    )
    def test_constructors(self, build, message: str):
        with pytest.raises(ValueError, match=message):
            build()

    def test_widths(self):
        heads = MultiHead(Attention(Dot()), 8, 2, memory_dim=6)
        with pytest.raises(ValueError, match="states must be 6 wide, not 8"):
            heads.remember(torch.zeros(1, 3, 8))
        with pytest.raises(ValueError, match="query must be 8 wide, not 6"):
            heads(torch.zeros(1, 3, 6), heads.remember(torch.zeros(1, 3, 6)))

    def test_nan(self):
        heads = MultiHead(Attention(Dot()), 8, 2)
        bad = torch.full((1, 3, 8), torch.nan)
        with pytest.raises(ValueError, match="states holds NaN"):
            heads.remember(bad)
        with pytest.raises(ValueError, match="query holds NaN"):
            heads(bad, heads.remember(torch.zeros(1, 3, 8)))


@pytest.mark.parametrize("groups", [None, 1])
@pytest.mark.parametrize("bias", [True, False])
def test_joint_projection_equals_three(groups, bias, monkeypatch):
    """Many states get query, key and value from one product."""
    heads = MultiHead(Attention(ScaledDot()), 8, 4, groups=groups, bias=bias).double()
    states, valid = torch.randn(2, 5, 8, dtype=torch.float64), torch.ones(2, 5, dtype=torch.bool)
    valid[1, 3:] = False
    results = {}
    for threshold in (1, 1000):
        monkeypatch.setattr("regard.kernels.linear.MIN_ROWS_FOR_JOINT_PRODUCT", threshold)
        read, past = heads.self_attend(states, valid, causal)
        continued, _ = heads.self_attend(states, None, causal, past)
        (read.sum() + continued.square().sum()).backward()
        results[threshold] = [read, continued, *(weight.grad for weight in heads.parameters())]
        heads.zero_grad()
    plain = heads(states, heads.remember(states, valid), causal, start=0)
    for separate, joint in zip(results[1], results[1000], strict=True):
        torch.testing.assert_close(separate, joint, rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(results[1][0], plain, rtol=1e-10, atol=1e-12)
