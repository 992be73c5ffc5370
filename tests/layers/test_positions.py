"""Positions against loops from the equations, and their laws."""

import math
from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.autograd import gradcheck

from regard.layers.positions import (
    LearnedPositions,
    RelativeBias,
    RotaryPositions,
    SinusoidalPositions,
)

DOUBLE = torch.float64


def numbers(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=DOUBLE)


def wave(position: int, column: int, dim: int) -> float:
    """Vaswani et al. 2017, 3.5, for one number of the table."""
    angle = position / 10000 ** (2 * (column // 2) / dim)
    return math.sin(angle) if column % 2 == 0 else math.cos(angle)


# Sinusoidal ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("dim", "length", "start"), [(6, 5, 0), (7, 4, 3), (1, 3, 0), (8, 300, 9)])
def test_sinusoidal_is_the_equation(dim: int, length: int, start: int):
    states = torch.randn(2, length, dim, dtype=DOUBLE)
    got = SinusoidalPositions(dim)(states, start)
    table = [[wave(start + t, column, dim) for column in range(dim)] for t in range(length)]
    expected = states + torch.tensor(table, dtype=DOUBLE)
    torch.testing.assert_close(got, expected, rtol=1e-10, atol=1e-13)


def test_sinusoidal_numbers_by_hand():
    table = SinusoidalPositions(4)(torch.zeros(1, 2, 4))[0]
    torch.testing.assert_close(table[0], torch.tensor([0.0, 1, 0, 1]))
    torch.testing.assert_close(
        table[1], torch.tensor([0.84147, 0.54030, 0.01, 0.99995]), atol=1e-5, rtol=0
    )
    assert not list(SinusoidalPositions(4).state_dict())


@given(st.integers(0, 5000), st.integers(0, 5000))
def test_sinusoidal_shift_is_a_rotation_independent_of_position(t: int, shift: int):
    """The reason the paper gives for sinusoids: P[t + k] is a linear function of P[t]."""
    dim, position = 8, SinusoidalPositions(8)
    zero = torch.zeros(1, 1, dim, dtype=DOUBLE)
    here, there = position(zero, t)[0, 0], position(zero, t + shift)[0, 0]
    for i in range(0, dim, 2):
        angle = shift / 10000 ** (i / dim)
        sine, cosine = here[i].item(), here[i + 1].item()
        moved_sine = sine * math.cos(angle) + cosine * math.sin(angle)
        moved_cosine = cosine * math.cos(angle) - sine * math.sin(angle)
        assert there[i].item() == pytest.approx(moved_sine, abs=1e-9)
        assert there[i + 1].item() == pytest.approx(moved_cosine, abs=1e-9)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_sinusoidal_angles_do_not_suffer_from_the_dtype_of_the_model(dtype: torch.dtype):
    position = SinusoidalPositions(6).to(torch.bfloat16).to(dtype)
    far = position(torch.zeros(1, 2, 6, dtype=dtype), 50_000)
    assert far.dtype == dtype
    expected = torch.tensor([[wave(50_000 + t, c, 6) for c in range(6)] for t in range(2)])
    assert torch.equal(far[0], expected.to(dtype))


@settings(max_examples=25)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 700),
            st.integers(0, 400),
            st.sampled_from([torch.float32, DOUBLE, torch.bfloat16]),
            st.booleans(),
        ),
        min_size=2,
        max_size=5,
    )
)
def test_the_cache_never_changes_results(calls: list[tuple[int, int, torch.dtype, bool]]):
    """Any order of starts, lengths, dtypes and inference modes gives the result of a new module."""
    sinusoidal, rotary = SinusoidalPositions(6), RotaryPositions()
    for start, length, dtype, inference in calls:
        x = torch.randn(1, length, 6, dtype=dtype)
        narrow = x[..., : 2 + start % 2 * 2]
        with torch.inference_mode(inference):
            assert torch.equal(sinusoidal(x, start), SinusoidalPositions(6)(x, start))
            assert torch.equal(rotary(x, start), RotaryPositions()(x, start))
            assert torch.equal(rotary(narrow, start), RotaryPositions()(narrow, start))
    x = torch.randn(1, 3, 6, dtype=calls[-1][2], requires_grad=True)
    rotary(sinusoidal(x, calls[-1][0]), calls[-1][0]).sum().backward()  # also after inference mode


# Learned ---------------------------------------------------------------------------------------


def test_learned_adds_its_rows():
    position = LearnedPositions(10, 4).double()
    states = torch.randn(2, 3, 4, dtype=DOUBLE, requires_grad=True)
    got = position(states, 6)
    for t in range(3):
        torch.testing.assert_close(got[:, t], states[:, t] + position.weight[6 + t])
    got.sum().backward()
    assert position.weight.grad is not None
    assert position.weight.grad.sum(1).tolist() == [0] * 6 + [8.0] * 3 + [0]
    assert gradcheck(position, (states,))
    assert position(states, 7).shape == states.shape


def test_learned_positions_beyond_the_table_are_rejected():
    position = LearnedPositions(10, 4)
    for length, start, reached in [(11, 0, 11), (1, 10, 11), (4, 8, 12)]:
        message = f"^states reach position {reached}, but the table has only 10$"
        with pytest.raises(ValueError, match=message):
            position(torch.zeros(1, length, 4), start)


@pytest.mark.parametrize("build", [SinusoidalPositions, lambda dim: LearnedPositions(12, dim)])
def test_rows_padded_on_the_left_start_below_zero(build: Callable[[int], nn.Module]):
    """Each row has the positions that it has alone; padding is at position 0."""
    position, states = build(4).double(), numbers(3, 7, 4)
    got = position(states, torch.tensor([-5, 0, 3]))
    for row, start in enumerate([-5, 0, 3]):
        real = max(0, -start)
        alone = position(states[row : row + 1, real:], max(start, 0))
        torch.testing.assert_close(got[row : row + 1, real:], alone, rtol=1e-12, atol=0)
        first = position(states[row : row + 1, :1])
        if real:
            torch.testing.assert_close(got[row : row + 1, :1], first, rtol=1e-12, atol=0)
    step = position(states[:, :1], torch.tensor([2, 7, 10]))
    torch.testing.assert_close(step[1:2], position(states[1:2, :1], 7), rtol=1e-12, atol=0)


# RelativeBias ----------------------------------------------------------------------------------


def t5_bucket(distance: int, two_sided: bool, buckets: int, max_distance: int) -> int:
    """Raffel et al. 2020 in floating point, as in T5's code; distance = slot - query."""
    first = 0
    if two_sided:
        buckets //= 2
        if distance > 0:
            first = buckets
        distance = abs(distance)
    else:
        distance = -min(distance, 0)
    exact = buckets // 2
    if distance < exact:
        return first + distance
    growth = math.log(distance / exact) / math.log(max_distance / exact)
    return first + min(exact + int(growth * (buckets - exact) + 1e-9), buckets - 1)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    ("buckets", "max_distance"), [(32, 128), (32, 1000), (8, 20), (6, 9), (4, 3)]
)
def test_buckets_are_those_of_t5(causal: bool, buckets: int, max_distance: int):
    bias = RelativeBias(2, buckets=buckets, max_distance=max_distance, causal=causal)
    distances = range(-1500, 1500)
    expected = [t5_bucket(d, not causal, buckets, max_distance) for d in distances]
    assert bias.bucket(torch.tensor(distances)).tolist() == expected


def test_buckets_by_hand():
    two_sided, causal = RelativeBias(1), RelativeBias(1, causal=True)
    distances = torch.tensor([-200, -128, -16, -8, -7, -1, 0, 1, 7, 8, 16, 128, 200])
    assert two_sided.bucket(distances).tolist() == [15, 15, 10, 8, 7, 1, 0, 17, 23, 24, 26, 31, 31]
    assert causal.bucket(distances).tolist() == [31, 31, 16, 8, 7, 1, 0, 0, 0, 0, 0, 0, 0]


@given(
    st.integers(1, 6), st.integers(1, 9), st.integers(0, 12), st.booleans(), st.sampled_from([4, 8])
)
def test_bias_is_the_table_at_the_bucket(
    queries: int, slots: int, start: int, causal: bool, buckets: int
):
    bias = RelativeBias(3, buckets=buckets, max_distance=7, causal=causal).double()
    got = bias(queries, slots, start)
    assert got.shape == (3, queries, slots)
    for i in range(queries):
        for j in range(slots):
            row = t5_bucket(j - (start + i), not causal, buckets, 7)
            assert torch.equal(got[:, i, j], bias.weight[row])


def test_bias_of_a_step_is_a_row_of_the_full_bias():
    bias = RelativeBias(2, buckets=8, max_distance=5).double()
    full = bias(6, 6, 0)
    for t in range(6):
        assert torch.equal(bias(1, t + 1, t), full[:, t : t + 1, : t + 1])
    factor = torch.randn(2, 6, 6, dtype=DOUBLE)
    (full * factor).sum().backward()
    expected = torch.zeros_like(bias.weight)
    for i in range(6):
        for j in range(6):
            expected[t5_bucket(j - i, True, 8, 5)] += factor[:, i, j]
    torch.testing.assert_close(bias.weight.grad, expected)
    assert list(bias.state_dict()) == ["weight"]


# Rotary ----------------------------------------------------------------------------------------


def rotated(x: Tensor, start: int) -> Tensor:
    """Su et al. 2021, eq. 34, pair by pair."""
    out, dim = torch.empty_like(x), x.shape[-1]
    for t in range(x.shape[-2]):
        for i in range(0, dim, 2):
            angle = (start + t) / 10000 ** (i / dim)
            x0, x1 = x[..., t, i], x[..., t, i + 1]
            out[..., t, i] = x0 * math.cos(angle) - x1 * math.sin(angle)
            out[..., t, i + 1] = x0 * math.sin(angle) + x1 * math.cos(angle)
    return out


@pytest.mark.parametrize("start", [0, 3, 1000])
def test_rotary_is_the_equation(start: int):
    x = torch.randn(2, 3, 5, 8, dtype=DOUBLE)
    torch.testing.assert_close(
        RotaryPositions()(x, start), rotated(x, start), rtol=1e-10, atol=1e-12
    )


@settings(max_examples=25)
@given(st.integers(0, 3000), st.integers(0, 3000), st.integers(0, 3000), st.integers(1, 8))
def test_rotary_product_depends_on_the_distance_alone(s: int, t: int, shift: int, pairs: int):
    q, k, rotary = *torch.randn(2, 1, 2 * pairs, dtype=DOUBLE), RotaryPositions()
    here = (rotary(q, s) * rotary(k, t)).sum()
    there = (rotary(q, s + shift) * rotary(k, t + shift)).sum()
    torch.testing.assert_close(here, there, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(rotary(q, s).norm(), q.norm(), rtol=1e-10, atol=0)
    if s >= t:
        torch.testing.assert_close(here, (rotary(q, s - t) * k).sum(), rtol=1e-9, atol=1e-9)


def test_rotary_tells_distances_apart():
    q, rotary = torch.randn(1, 16), RotaryPositions()
    products = [(rotary(q, t) * q).sum().item() for t in range(20)]
    assert products[0] == max(products)
    assert len({round(p, 4) for p in products}) == 20


def test_rotary_takes_any_strides():
    tensor = torch.randn(4, 5, 7, 12, dtype=DOUBLE)
    views = [
        tensor.transpose(1, 2),  # the strides of heads after a projection
        tensor[..., 1:9],  # pairs begin at an odd offset
        tensor[..., ::2][..., :4],
        torch.randn(3, 9, dtype=DOUBLE)[:, :8],  # rows an odd number apart
        torch.randn(8, 3, dtype=DOUBLE).T,
        torch.randn(1, 9, dtype=DOUBLE)[:, 1:],
        tensor[:, :, :0],
    ]
    for x in views:
        torch.testing.assert_close(RotaryPositions()(x, 2), rotated(x, 2), rtol=1e-10, atol=1e-12)


def test_rotary_gradient_and_compiled_path(unchecked: None):
    rotary = RotaryPositions()
    x = torch.randn(2, 3, 4, dtype=DOUBLE, requires_grad=True)
    assert gradcheck(lambda x: rotary(x, 5), (x,))
    compiled = torch.compile(rotary, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(x, 5), rotary(x, 5), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_rotary_in_half_precision_rounds_once(dtype: torch.dtype):
    x = torch.randn(2, 3, 5, 8).to(dtype)
    got = RotaryPositions().to(dtype)(x, 40_000)
    assert got.dtype == dtype
    exact = rotated(x.double(), 40_000)
    eps = torch.finfo(dtype).eps
    torch.testing.assert_close(got.double(), exact, rtol=eps, atol=2e-6)


def test_bad_arguments(unchecked: None):
    states = torch.zeros(1, 2, 6)
    for position in (SinusoidalPositions(6), LearnedPositions(9, 6)):
        with pytest.raises(ValueError, match=r"^start must be 0 or more, not -1$"):
            position(states, -1)
    with pytest.raises(ValueError, match=r"^start must be 0 or more, not -1$"):
        RotaryPositions()(states, -1)
    for position in (SinusoidalPositions(8), LearnedPositions(9, 8)):
        for bad in (states, torch.zeros(2, 8), torch.zeros(8)):
            message = (
                rf"^states must be \[batch, positions, 8\], not \[{str(list(bad.shape))[1:-1]}\]$"
            )
            with pytest.raises(ValueError, match=message):
                position(bad)
        with pytest.raises(ValueError, match=r"^states must be floating point, not torch\.int64$"):
            position(torch.zeros(1, 2, 8, dtype=torch.long))
    with pytest.raises(ValueError, match=r"^states must be torch\.float32 like the weights"):
        LearnedPositions(9, 6)(states.double())
    with pytest.raises(ValueError, match=r"^x must be floating point, not torch\.int64$"):
        RotaryPositions()(torch.zeros(2, 4, dtype=torch.long))
    for bad in (torch.zeros(1, 2, 5), torch.zeros(4)):
        with pytest.raises(ValueError, match=r"^x must be \[\.\.\., positions, even width\]"):
            RotaryPositions()(bad)
    for position in (SinusoidalPositions(6), LearnedPositions(9, 6)):
        for bad in (torch.tensor(0), torch.tensor([0, 1]), torch.tensor([0.0])):
            with pytest.raises(
                ValueError, match=r"^start must be an integer, or one integer for each of 1"
            ):
                position(states, bad)
    with pytest.raises(ValueError, match=r"^states reach position 10, but the table has only 9$"):
        LearnedPositions(9, 6)(states, torch.tensor([8]))
    with pytest.raises(ValueError, match=r"^base must be positive, not 0$"):
        RotaryPositions(base=0)
    with pytest.raises(ValueError, match=r"^max_positions must be positive, not 0$"):
        LearnedPositions(0, 4)
    for buckets in (2, 7):
        with pytest.raises(ValueError, match=f"^buckets must be .*, not {buckets} in total$"):
            RelativeBias(2, buckets=buckets)
    with pytest.raises(ValueError, match=r"^max_distance must be greater than 8, not 8$"):
        RelativeBias(2, max_distance=8)
