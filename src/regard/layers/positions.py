"""Positions in a sequence, in three forms:

    Sinusoidal, Learned    states + P[position]                     once, below the first layer
    RelativeBias           energy + B[bucket(slot - position)]      in each attention
    Rotary                 R_position q . R_slot k                  in each attention

Each takes `start`, the position of the first state, so that steps with a cache and one pass over
the sequence compute the same function. The first two also take one start for each row: rows padded
on the left start below 0.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Complex, Float, Int
from torch import Tensor, nn

from regard.attention.validation import check_float, check_positive
from regard.errors import InputError
from regard.layers.cells import check_dtype
from regard.layers.precision import has_float64

# (positions [*t], dim, base) -> features [*t dim]
PositionFeatures = Callable[[Tensor, int, float], Tensor]

MIN_CACHED_POSITIONS = 256  # computed together, so that most steps of decoding only look up a row


def check_states(states: Tensor, dim: int, weight: Tensor | None = None) -> None:
    """Check shape and dtype of states [batch, positions, dim]."""
    if states.ndim != 3 or states.shape[2] != dim:
        raise InputError(f"states must be [batch, positions, {dim}], not {list(states.shape)}")
    check_float("states", states)
    if weight is not None:
        check_dtype("states", states, weight)


class CachedRows(NamedTuple):
    """Rows for the positions from `start` on."""

    start: int
    dim: int
    rows: Tensor


class PositionTable:
    """`build_features(positions, dim, base)` for consecutive positions, with a cache.

    The cache is not a buffer of the module, because `model.to(torch.bfloat16)` would round a
    buffer. Angles are computed in float64, whatever the dtype of the model.
    """

    def __init__(self, build_features: PositionFeatures, base: float):
        check_positive("base", base)
        self.build_features, self.base = build_features, base
        self.cache: CachedRows | None = None

    def __call__(
        self, start: int, length: int, dim: int, dtype: torch.dtype, device: torch.device
    ) -> Tensor:
        check_start(start)
        if torch.compiler.is_compiling():
            return self.compute(start, length, dim, dtype, device)
        cache = self.cache
        if (
            cache is None
            or start < cache.start
            or start + length > cache.start + cache.rows.shape[0]
            or cache.dim != dim
            or cache.rows.dtype != dtype
            or cache.rows.device != device
        ):
            with torch.inference_mode(False):  # training cannot use inference tensors
                rows = self.compute(start, max(length, MIN_CACHED_POSITIONS), dim, dtype, device)
            self.cache = cache = CachedRows(start, dim, rows)
        first = start - cache.start
        return cache.rows[first : first + length]

    def compute(
        self, start: int, length: int, dim: int, dtype: torch.dtype, device: torch.device
    ) -> Tensor:
        return self.features_at(torch.arange(start, start + length, device=device), dim, dtype)

    def features_at(self, positions: Int[Tensor, "*t"], dim: int, dtype: torch.dtype) -> Tensor:
        precise_dtype = torch.float64 if has_float64(positions.device) else torch.float32
        return self.build_features(positions.to(precise_dtype), dim, self.base).to(dtype)


def angles(positions: Float[Tensor, "*t"], dim: int, base: float) -> Float[Tensor, "*t pairs"]:
    """t / base^(2i/d): one angle for each pair of features, from fast to slow."""
    pair = torch.arange(0, dim, 2, dtype=positions.dtype, device=positions.device)
    return positions[..., None] * base ** (-pair / dim)


def interleaved_sinusoids(
    positions: Float[Tensor, "*t"], dim: int, base: float
) -> Float[Tensor, "*t {dim}"]:
    """Return sine and cosine of each angle as neighbors."""
    angle = angles(positions, dim, base)
    return torch.stack([angle.sin(), angle.cos()], -1).flatten(-2)[..., :dim]


def concatenated_sinusoids(
    positions: Float[Tensor, "*t"], dim: int, base: float
) -> Float[Tensor, "*t {dim}"]:
    """Return the sines of all angles, then their cosines, as in tensor2tensor and Marian."""
    angle = angles(positions, dim, base)
    return torch.cat([angle.sin(), angle.cos()], -1)[..., :dim]


def rotation_factors(
    positions: Float[Tensor, "*t"], dim: int, base: float
) -> Float[Tensor, "*t pairs 2"]:
    """e^(i angle), real part first; multiplying a pair of features by it rotates the pair."""
    angle = angles(positions, dim, base)
    return torch.stack([angle.cos(), angle.sin()], -1)


class SinusoidalPositions(nn.Module):
    """P[t, 2i] = sin(t / 10000^(2i/d)), P[t, 2i+1] = cos(t / 10000^(2i/d))  (Vaswani et al. 2017).

    Sines and cosines alternate, as in the equation, unless `order` is `concatenated_sinusoids`. An
    odd `dim` has one more sine.
    """

    def __init__(
        self, dim: int, *, base: float = 10_000.0, order: PositionFeatures = interleaved_sinusoids
    ):
        super().__init__()
        check_positive("dim", dim)
        self.dim = dim
        self.rows = PositionTable(order, base)

    def forward(
        self, states: Float[Tensor, "b t d"], start: int | Int[Tensor, " b"] = 0
    ) -> Float[Tensor, "b t d"]:
        check_states(states, self.dim)
        if isinstance(start, Tensor):
            return states + self.rows.features_at(
                row_positions(start, states), self.dim, states.dtype
            )
        rows = self.rows(start, states.shape[1], self.dim, states.dtype, states.device)
        return states + rows


class LearnedPositions(nn.Module):
    """states + P[position], with a learned table P  (Gehring et al. 2017)."""

    def __init__(self, max_positions: int, dim: int, *, init_std: float = 0.02):
        super().__init__()
        check_positive("max_positions", max_positions)
        check_positive("dim", dim)
        self.std = init_std
        self.weight = nn.Parameter(torch.empty(max_positions, dim))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.normal_(self.weight, std=self.std)

    def forward(
        self, states: Float[Tensor, "b t d"], start: int | Int[Tensor, " b"] = 0
    ) -> Float[Tensor, "b t d"]:
        check_states(states, self.weight.shape[1], self.weight)
        length = states.shape[1]
        if isinstance(start, Tensor):
            positions = row_positions(start, states)
            if not torch.compiler.is_compiling() and positions.device.type == "cpu":
                self.check_end(int(start.max()) + length)
            return states + F.embedding(positions, self.weight)
        check_start(start)
        self.check_end(start + length)
        return states + self.weight[start : start + length]

    def check_end(self, end: int) -> None:
        limit = self.weight.shape[0]
        if end > limit:
            raise InputError(f"states reach position {end}, but the table has only {limit}")


def check_start(start: int) -> None:
    if start < 0:
        raise InputError(f"start must be 0 or more, not {start}")


def row_positions(start: Int[Tensor, " b"], states: Float[Tensor, "b t d"]) -> Int[Tensor, "b t"]:
    """Return positions from one start for each row; those below 0 (padding) become 0."""
    if start.shape != states.shape[:1] or start.is_floating_point():
        raise InputError(
            f"start must be an integer, or one integer for each of {states.shape[0]} rows, "
            f"not {start.dtype} of shape {list(start.shape)}"
        )
    return (start[:, None] + torch.arange(states.shape[1], device=states.device)).clamp(min=0)


class RelativeBias(nn.Module):
    """energy += B[head, bucket(slot - query position)]  (Raffel et al. 2020, 2.1).

    Half of the buckets hold one distance each. The other half grow geometrically up to
    `max_distance`; the last bucket holds all larger distances. With `causal`, all buckets are for
    the past. Otherwise half are for the past and the position itself, and half for the future.
    """

    limits: Tensor

    def __init__(
        self, heads: int, *, buckets: int = 32, max_distance: int = 128, causal: bool = False
    ):
        super().__init__()
        check_positive("heads", heads)
        buckets_per_side = buckets if causal else buckets // 2
        if buckets_per_side < 2 or (not causal and buckets % 2):
            raise InputError(f"buckets must be at least 2 for each side, not {buckets} in total")
        if max_distance <= buckets_per_side // 2:
            raise InputError(
                f"max_distance must be greater than {buckets_per_side // 2}, not {max_distance}"
            )
        self.causal, self.buckets_per_side = causal, buckets_per_side
        self.weight = nn.Parameter(torch.empty(buckets, heads))
        limits = torch.tensor(bucket_limits(buckets_per_side, max_distance))
        self.register_buffer("limits", limits, persistent=False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.normal_(self.weight, std=0.02)

    def forward(
        self, n_queries: int, n_slots: int, start: int
    ) -> Float[Tensor, "h {n_queries} {n_slots}"]:
        # The bias depends on the distance alone. So one value is looked up for each distance, from
        # the last query and the first slot to the first query and the last slot. Each query takes
        # n_slots consecutive values.
        distance_stop, distance_start = n_slots - start, -(start + n_queries - 1)
        distance = torch.arange(distance_start, distance_stop, device=self.weight.device)
        bias_by_distance = self.weight[self.bucket(distance)].T
        return bias_by_distance.unfold(1, n_slots, 1).flip(1)

    def bucket(self, distance: Int[Tensor, " n"]) -> Int[Tensor, " n"]:
        """Return the bucket of slot - query position, as in T5; the past is negative."""
        magnitude = (-distance).clamp(min=0) if self.causal else distance.abs()
        bucket = torch.bucketize(magnitude, self.limits, right=True)
        return bucket if self.causal else bucket + (distance > 0) * self.buckets_per_side


def bucket_limits(buckets: int, max_distance: int) -> list[int]:
    """Return the smallest distance of each bucket except the first.

    With m = buckets // 2 and n = buckets - m: 1, 2, .. m, and then the smallest integers >=
    m (max_distance / m)^(j/n). The comparison uses integers, so that rounding cannot move a limit.
    """
    exact = buckets // 2
    rest = buckets - exact
    limits = list(range(1, exact + 1))
    for j in range(1, rest):
        limit = math.floor(exact * (max_distance / exact) ** (j / rest)) - 1
        while limit**rest < exact ** (rest - j) * max_distance**j:
            limit += 1
        limits.append(limit)
    return limits


class RotaryPositions(nn.Module):
    """R_t x: each pair (x_2i, x_2i+1) rotated by t / 10000^(2i/d)  (Su et al. 2021, eq. 34).

    Then R_s q . R_t k depends on s - t alone. Pairs are neighbors, as in the paper; in GPT-NeoX
    they are halves of the vector. The two differ only in the order of the features, but weights
    trained with one do not fit the other. Keys are rotated by `remember`, queries by `forward`. One
    instance can serve every layer.
    """

    def __init__(self, *, base: float = 10_000.0):
        super().__init__()
        self.rows = PositionTable(rotation_factors, base)

    def forward(self, x: Float[Tensor, "*b t d"], start: int = 0) -> Float[Tensor, "*b t d"]:
        check_float("x", x)
        if x.ndim < 2 or x.shape[-1] % 2:
            shape = list(x.shape)
            raise InputError(f"x must be [..., positions, even width] for a rotation, not {shape}")
        length, dim = x.shape[-2:]
        # half precision is rotated in float32
        precise_dtype = torch.promote_types(x.dtype, torch.float32)
        rotation = self.rows(start, length, dim, precise_dtype, x.device)
        pairs = x.to(precise_dtype).unflatten(-1, (-1, 2))
        if torch.compiler.is_compiling():  # the compiler fuses real arithmetic only
            rotated = complex_product(pairs, rotation)
        else:  # one kernel instead of seven: 5x faster at 8 heads x 512 x 64
            rotated = torch.view_as_real(as_complex(pairs) * torch.view_as_complex(rotation))
        return rotated.flatten(-2).to(x.dtype)


def complex_product(pairs: Float[Tensor, "*b t p 2"], rotation: Float[Tensor, "t p 2"]) -> Tensor:
    """(a + bi)(c + di) in real arithmetic."""
    (a, b), (c, d) = pairs.unbind(-1), rotation.unbind(-1)
    return torch.stack([a * c - b * d, a * d + b * c], -1)


def as_complex(pairs: Float[Tensor, "*b 2"]) -> Complex[Tensor, "*b"]:
    """Return a complex view, or a copy where the strides do not allow a view."""
    *strides, last = pairs.stride()
    if last != 1 or pairs.storage_offset() % 2 or any(stride % 2 for stride in strides):
        pairs = pairs.clone(memory_format=torch.contiguous_format)
    return torch.view_as_complex(pairs)
