"""The attention core: explicit and fused, full and cached, and its errors."""

import math

import pytest
import torch
from torch import Tensor

from regard.attention.core import Attention
from regard.attention.masks import Mask, causal, local, strictly_causal
from regard.attention.memory import grid_to_slots
from regard.attention.normalizers import sparsemax
from regard.attention.scores import (
    Additive,
    Cosine,
    Dot,
    General,
    LocationScore,
    Salience,
    ScaledDot,
)
from regard.attention.windows import PredictiveWindow

F64 = torch.float64
FUSED = {
    "dot": lambda: Attention(Dot()),
    "scaled_dot": lambda: Attention(ScaledDot()),
    "general": lambda: Attention(General(8, 8)),
    "cosine": lambda: Attention(Cosine()),
    "salience": lambda: Attention(Salience(8, 8)),
}
NOT_FUSED = {
    "additive": lambda: Attention(Additive(8, 8, 8)),
    "location": lambda: Attention(LocationScore(8, 9)),
    "sparse": lambda: Attention(Dot(), normalize=sparsemax),
    "window": lambda: Attention(Dot(), window=PredictiveWindow(8, 2)),
}


def test_attention_is_its_equation():
    """Bahdanau et al. 2015, eq. 5-6, in a loop; query, keys and values differ in width."""
    attention = Attention(Additive(3, 4, 5)).to(F64)
    query, states = torch.randn(2, 2, 3, dtype=F64), torch.randn(2, 6, 4, dtype=F64)
    values = torch.randn(2, 6, 7, dtype=F64)
    lengths = [6, 2]
    valid = torch.arange(6) < torch.tensor(lengths)[:, None]
    context = attention(query, attention.remember(states, valid, values))
    energy = attention.score(query, attention.score.prepare(states)).tolist()
    for b, length in enumerate(lengths):
        for t in range(2):
            shares = [math.exp(e) for e in energy[b][t][:length]]
            want = torch.zeros(7, dtype=F64)
            for share, value in zip(shares, values[b], strict=False):
                want += share / sum(shares) * value
            torch.testing.assert_close(context[b, t], want, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("mask", [None, causal, strictly_causal, local(1), causal & local(2)])
@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("queries", [7, 1, 3])
@pytest.mark.parametrize("lead", [(3,), (3, 4), (2, 3, 4), ()])
def test_fused_is_explicit(mask: Mask | None, padded: bool, queries: int, lead: tuple[int, ...]):
    attention = Attention(ScaledDot())
    valid = (torch.rand(*lead, 7) < 0.7) if padded else None
    memory = attention.remember(
        torch.randn(*lead, 7, 8, dtype=F64), valid, torch.randn(*lead, 7, 5, dtype=F64)
    )
    query = torch.randn(*lead, queries, 8, dtype=F64)
    bias = torch.randn(queries, 7, dtype=F64)
    for extra in (None, bias):
        explicit = attention.read(attention.weigh(query, memory, mask, extra), memory)
        torch.testing.assert_close(attention(query, memory, mask, extra), explicit)


@pytest.mark.parametrize("name", FUSED)
def test_the_dot_family_is_fused(name: str, monkeypatch: pytest.MonkeyPatch):
    attention = FUSED[name]().to(F64)
    assert attention.fused_score is attention.score
    memory = attention.remember(torch.randn(2, 5, 8, dtype=F64))
    query = torch.randn(2, 3, 9 if name == "cosine" else 8, dtype=F64)
    explicit = attention.read(attention.weigh(query, memory), memory)
    monkeypatch.setattr(attention, "_weigh", None)
    torch.testing.assert_close(attention(query, memory), explicit)


@pytest.mark.parametrize("name", NOT_FUSED)
def test_the_rest_is_explicit(name: str):
    assert NOT_FUSED[name]().fused_score is None


def test_fewer_key_heads_than_query_heads():
    """Each key head serves several query heads, in both paths, also with one more leading axis."""
    for lead in [(2,), (3, 2)]:
        attention = Attention(ScaledDot())
        keys = torch.randn(*lead, 2, 5, 8, dtype=F64)
        query = torch.randn(*lead, 6, 4, 8, dtype=F64)
        memory, repeated = (
            attention.remember(keys),
            attention.remember(keys.repeat_interleave(3, -3)),
        )
        want = attention.read(attention.weigh(query, repeated), repeated)
        torch.testing.assert_close(attention(query, memory), want)
        torch.testing.assert_close(attention.read(attention.weigh(query, memory), memory), want)


def test_one_memory_serves_a_whole_batch():
    for attention in (Attention(ScaledDot()), Attention(Additive(8, 8, 4)).to(F64)):
        memory = attention.remember(torch.randn(5, 8, dtype=F64))
        query = torch.randn(3, 2, 8, dtype=F64)
        for row in range(3):
            torch.testing.assert_close(attention(query, memory)[row], attention(query[row], memory))


def test_empty_row_gets_zeros_and_finite_gradients():
    for attention in (
        Attention(ScaledDot()),
        Attention(Additive(4, 4, 4)),
        Attention(Dot(), sparsemax),
    ):
        states = torch.randn(2, 3, 4, requires_grad=True)
        query = torch.randn(2, 2, 4, requires_grad=True)
        memory = attention.remember(states, torch.tensor([[True, True, False], [False] * 3]))
        context = attention(query, memory)
        context.sum().backward()
        assert (context[1] == 0).all()
        for grad in (states.grad, query.grad):
            assert grad is not None
            assert grad.isfinite().all()
            assert (grad[1] == 0).all()


def test_dropout_drops_weights_in_training_only():
    for score in (ScaledDot(), Additive(4, 4, 4)):
        attention = Attention(score, dropout=0.5)
        memory = attention.remember(torch.zeros(1, 200, 4), values=torch.ones(1, 200, 1))
        query = torch.zeros(1, 50, 4)
        read = attention(query, memory)
        assert read.mean().item() == pytest.approx(1, abs=0.1)
        assert read.std() > 0.01
        torch.testing.assert_close(attention.eval()(query, memory), torch.ones(1, 50, 1))


def test_image_grid_and_turing_machine_matrix_as_memories():
    grid = torch.randn(2, 8, 3, 4)
    attention = Attention(Additive(5, 8, 6))
    assert attention(torch.randn(2, 1, 5), attention.remember(grid_to_slots(grid))).shape == (
        2,
        1,
        8,
    )
    ntm = Attention(Cosine())
    matrix = torch.randn(2, 6, 4)
    memory = ntm.remember(matrix)
    content = ntm.weigh(torch.randn(2, 1, 5), memory)
    shifted = 0.9 * content + 0.1 * content.roll(1, -1)
    torch.testing.assert_close(ntm.read(shifted, memory), shifted @ matrix)


def test_gradcheck_of_every_attention():
    for build in (*FUSED.values(), *NOT_FUSED.values()):
        attention = build().to(F64)
        width = 9 if isinstance(attention.score, Cosine) else 8

        def read(query: Tensor, states: Tensor, attention: Attention = attention) -> Tensor:
            return attention(query, attention.remember(states), strictly_causal | causal)

        query = torch.randn(1, 2, width, dtype=F64, requires_grad=True)
        states = torch.randn(1, 3, 8, dtype=F64, requires_grad=True)
        assert torch.autograd.gradcheck(read, (query, states))


def attention_and_memory(attention: Attention | None = None):
    attention = attention or Attention(ScaledDot())
    return attention, attention.remember(torch.randn(2, 5, 8))


def nan_at(*index: int, shape: tuple[int, ...]) -> Tensor:
    tensor = torch.zeros(shape)
    tensor[index] = torch.nan
    return tensor


@pytest.mark.usefixtures("unchecked")
class TestBadInput:
    """Each error is a ValueError that names the argument."""

    @pytest.mark.parametrize(
        ("query", "message"),
        [
            (torch.zeros(2, 3, 7), "query must be 8 wide, not 7"),
            (
                torch.zeros(3, 3, 8),
                r"query has leading axes \(3,\), which do not fit the memory's \(2,\)",
            ),
            (torch.zeros(8), r"query must be \[\.\.\., positions, width\], not of shape \(8,\)"),
            (
                torch.zeros(2, 3, 8).double(),
                r"query is torch\.float64 but memory is torch\.float32",
            ),
            (torch.zeros(2, 3, 8).long(), r"query must be floating point, not torch\.int64"),
            (nan_at(1, 2, 3, shape=(2, 3, 8)), r"query holds NaN, first at \(1, 2, 3\)"),
        ],
    )
    def test_query(self, query: Tensor, message: str):
        attention, memory = attention_and_memory()
        for call in (attention, attention.weigh):
            with pytest.raises(ValueError, match=message):
                call(query, memory)

    @pytest.mark.parametrize(
        ("states", "message"),
        [
            (torch.zeros(2, 5, 7), "states must be 8 wide, not 7"),
            (torch.zeros(2, 5, 8).int(), r"states must be floating point, not torch\.int32"),
            (torch.zeros(8), r"states must be \[\.\.\., positions, width\], not of shape \(8,\)"),
            (nan_at(0, 4, 7, shape=(2, 5, 8)), r"states holds NaN, first at \(0, 4, 7\)"),
        ],
    )
    def test_states(self, states: Tensor, message: str):
        with pytest.raises(ValueError, match=message):
            Attention(General(8, 8)).remember(states)

    def test_values(self):
        with pytest.raises(ValueError, match="values holds NaN"):
            Attention(Dot()).remember(torch.zeros(1, 2, 3), values=nan_at(0, 0, shape=(1, 2, 3)))
        with pytest.raises(ValueError, match="do not fit values"):
            Attention(Dot()).remember(torch.zeros(1, 2, 3), values=torch.zeros(1, 3, 3))

    def test_valid(self):
        with pytest.raises(ValueError, match="valid must be boolean"):
            Attention(Dot()).remember(torch.zeros(1, 2, 3), valid=torch.ones(1, 2))
        with pytest.raises(ValueError, match="valid has shape"):
            Attention(Dot()).remember(torch.zeros(1, 2, 3), valid=torch.ones(1, 3).bool())

    def test_empty_memory(self):
        attention = Attention(Dot())
        with pytest.raises(ValueError, match="memory has no slots"):
            attention(torch.zeros(1, 2, 3), attention.remember(torch.zeros(1, 0, 3)))

    def test_bias(self):
        attention, memory = attention_and_memory()
        with pytest.raises(
            ValueError, match=r"bias has shape \(3, 4\), which does not fit \(2, 3, 5\)"
        ):
            attention(torch.zeros(2, 3, 8), memory, bias=torch.zeros(3, 4))

    def test_weights(self):
        attention, memory = attention_and_memory()
        with pytest.raises(ValueError, match="weights have 4 slots, but memory 5"):
            attention.read(torch.zeros(2, 3, 4), memory)

    def test_too_many_slots_for_a_location(self):
        attention, memory = attention_and_memory(Attention(LocationScore(8, 4)))
        with pytest.raises(
            ValueError, match="memory has 5 slots, but the location score has at most 4"
        ):
            attention(torch.zeros(2, 3, 8), memory)

    @pytest.mark.parametrize(
        ("build", "message"),
        [
            (lambda: Attention(Dot(), dropout=1.0), "dropout must be in"),
            (lambda: PredictiveWindow(8, radius=0), "radius must be at least 1"),
            (lambda: PredictiveWindow(8, sigma=0), "sigma must be positive"),
            (lambda: local(0), "radius must be positive"),
            (lambda: Additive(8, 8, 0), "hidden_dim must be positive"),
            (lambda: LocationScore(8, 0), "slots must be positive"),
            (lambda: General(8, 8, heads=0), "heads must be positive"),
        ],
    )
    def test_constructors(self, build, message: str):
        with pytest.raises(ValueError, match=message):
            build()

    def test_infinities_that_cancel_are_not_nan(self):
        query = torch.zeros(1, 2, 3)
        query[0, 0, 0], query[0, 0, 1] = torch.inf, -torch.inf
        attention = Attention(LocationScore(3, 4))
        assert attention(query, attention.remember(torch.zeros(1, 4, 3))).shape == (1, 2, 3)
