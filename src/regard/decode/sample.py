"""Draw tokens, from the whole distribution or from its likely part.

n: rows   v: vocabulary   c: candidates
"""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from regard.decode.greedy import check_count, roll
from regard.decode.rules import FREE, Bound, Rules
from regard.decode.stepper import Hypothesis, Stepper, check_told
from regard.decode.top import PIECE, best

STRIDE = -0x61C8864680B583EB  # 2^64 / the golden ratio, odd, as a signed number
ROUNDING = 1e-6  # tokens that hold a share of top_p but for rounding hold it


@dataclass(frozen=True)
class Draw:
    """How to draw: sharpen by 1 / temperature, then cut, in this order; None cuts nothing.

        top_k    keep the k likeliest
        top_p    keep the likeliest until they hold a share p of what is left (Holtzman et al. 2020)
        min_p    keep what is at least p times as likely as the likeliest (Nguyen et al. 2024)

    Among equals the lower ids are kept.
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None

    def __post_init__(self) -> None:
        if not 0 < self.temperature < float("inf"):
            raise ValueError(
                f"temperature must be positive, not {self.temperature}; "
                "for the likeliest token each time, use greedy"
            )
        if self.top_k is not None and self.top_k < 1:
            raise ValueError(f"top_k must be 1 or more, not {self.top_k}")
        for name, share in (("top_p", self.top_p), ("min_p", self.min_p)):
            if share is not None and not 0 < share <= 1:
                raise ValueError(f"{name} must be in (0, 1], not {share}")


PLAIN = Draw()


@torch.inference_mode()
def sample(
    stepper: Stepper[Any, Any],
    memory: Any,
    seeds: Sequence[int],
    draw: Draw = PLAIN,
    *,
    copies: int = 1,
    rules: Rules = FREE,
) -> list[list[Hypothesis]]:
    """`copies` outputs for each input, drawn with the seed of that input.

    An input's outputs depend on its seed, not on its neighbours, its place in the batch or the
    number of copies. Log-probabilities are the model's own, before temperature and cuts.
    """
    if copies < 1:
        raise ValueError(f"copies must be 1 or more, not {copies}")
    if not check_count(len(seeds)):
        return []
    bound = Bound(rules, len(seeds))
    keys = torch.tensor([key(seed, copy) for seed in seeds for copy in range(copies)])

    def choose(log_probs: Tensor, rows: Tensor, position: int) -> Tensor:
        check_told(log_probs.amax(1), position)
        return pick(cut(log_probs, draw), mixed(keys[rows] + torch.tensor(position) * STRIDE))

    state = stepper.start(memory)
    if copies > 1:
        state = stepper.select(state, torch.arange(len(seeds)).repeat_interleave(copies))
    outputs = roll(stepper, state, bound, choose, copies)
    return [outputs[at : at + copies] for at in range(0, len(outputs), copies)]


def cut(log_probs: Float[Tensor, "n v"], draw: Draw) -> Float[Tensor, "n v"]:
    """How likely each token is beside the likeliest, which has 1; those that were cut have 0."""
    peaks = log_probs.amax(1, keepdim=True).clamp(min=torch.finfo(log_probs.dtype).min)
    if draw.top_k is None:
        return thinned(log_probs - peaks, draw)
    _, _, ids = best(log_probs, log_probs.new_zeros(len(log_probs), 1), draw.top_k)
    kept = thinned(log_probs.gather(1, ids) - peaks, draw)
    return torch.zeros_like(log_probs).scatter_(1, ids, kept)


def thinned(below: Float[Tensor, "n c"], draw: Draw) -> Float[Tensor, "n c"]:
    """exp(below / temperature), then top_p and min_p; overwrites what it was given."""
    if draw.temperature != 1:
        below /= draw.temperature
    masses = below.exp_()
    if draw.top_p is not None and draw.top_p < 1:
        masses = nucleus(masses, draw.top_p)
    return masses if draw.min_p is None else masses.masked_fill_(masses < draw.min_p, 0.0)


def nucleus(masses: Float[Tensor, "n c"], share: float) -> Float[Tensor, "n c"]:
    """0, in place, for all but the fewest that hold this share; among equals the first stay."""
    rising = ascending(masses)
    lowest = reached(rising, 1 - share + ROUNDING)  # what is below holds no more than the rest
    least, below = rising.gather(1, lowest), rising.gather(1, (lowest - 1).clamp(min=0))
    many = ((least == below) & (lowest > 0)).nonzero()[:, 0]  # not all equals may stay
    if len(many):
        equal = masses[many] == least[many]
        places = masses.shape[1] - lowest[many] - (masses[many] > least[many]).sum(1, keepdim=True)
        masses[many] = masses[many].masked_fill(equal & (equal.cumsum(1) > places), 0.0)
    return masses.masked_fill_(masses < least, 0.0)


def ascending(rows: Float[Tensor, "n c"]) -> Float[Tensor, "n c"]:
    """Each row sorted. numpy's sort is vectorised: 64 rows of 10,000 take 3 ms, torch's 48."""
    if rows.device.type != "cpu":
        return rows.sort(1)[0]
    return torch.from_numpy(np.sort(rows.numpy(), axis=1))


def reached(masses: Float[Tensor, "n c"], share: float) -> Int[Tensor, "n 1"]:
    """The first place where the running sum exceeds this share of the whole.

    By the sums of pieces first: 64 rows of 10,000 take 0.6 ms so, and 8 by running sums alone.
    """
    size = masses.shape[1]
    held = pieces(masses).sum(2, dtype=torch.float64).cumsum(1)
    reach = share * held[:, -1:]
    piece = torch.searchsorted(held, reach, right=True).clamp(max=held.shape[1] - 1)
    before = F.pad(held, (1, 0)).gather(1, piece)
    columns = (piece * PIECE + torch.arange(PIECE)).clamp(max=size - 1)
    inside = before + masses.gather(1, columns).double().cumsum(1)
    place = torch.searchsorted(inside, reach, right=True).clamp(max=PIECE - 1)
    return columns.gather(1, place)


def pick(masses: Float[Tensor, "n v"], keys: Int[Tensor, " n"]) -> Int[Tensor, " n"]:
    """One token for each row, by its mass: argmax(log mass + Gumbel noise), first among pieces.

    The noise of a token depends on the key of its row and on its id alone. So a rounding error in
    the masses changes what is drawn only where two sums are equal but for it, about one draw in a
    million; where a running sum is cut by a random number, every one of 10,000 borders would move.
    """
    parts = pieces(masses)
    sums = parts.sum(2, dtype=torch.float64)
    piece = (sums.log() + gumbel(keys, sums.shape[1], 0)).argmax(1, keepdim=True)
    inside = parts[torch.arange(len(parts)), piece[:, 0]].double()
    place = (inside.log() + gumbel(keys, PIECE, sums.shape[1])).argmax(1, keepdim=True)
    return (piece * PIECE + place)[:, 0].clamp(max=masses.shape[1] - 1)


def pieces(masses: Float[Tensor, "n v"]) -> Float[Tensor, "n p piece"]:
    """Rows cut into pieces, the last one filled up with 0."""
    missing = -masses.shape[1] % PIECE
    return (F.pad(masses, (0, missing)) if missing else masses).unflatten(1, (-1, PIECE))


def key(seed: int, copy: int) -> int:
    """Where the noise of a row begins; made from a string, it is the same on every machine."""
    return Random(f"{seed} {copy}").getrandbits(63)


def gumbel(keys: Int[Tensor, " n"], count: int, start: int) -> Float[Tensor, "n count"]:
    """-log(-log u) for uniform u, by counting from the key of each row, and mixing."""
    bits = mixed(keys[:, None] + torch.arange(start + 1, start + count + 1) * STRIDE)
    uniform = ((bits & (2**52 - 1)).double() + 0.5) * 2.0**-52
    return -(-uniform.log()).log()


def mixed(numbers: Int[Tensor, "*n"]) -> Int[Tensor, "*n"]:
    """64 bits that look like chance, from numbers that do not (SplitMix64: Steele et al. 2014)."""
    for shift, factor in ((30, -0x40A7B892E31B1A47), (27, -0x6B2FB644ECCEEE15)):
        numbers = (numbers ^ ((numbers >> shift) & (2 ** (64 - shift) - 1))) * factor
    return numbers ^ ((numbers >> 31) & (2**33 - 1))
