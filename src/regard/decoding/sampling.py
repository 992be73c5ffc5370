"""Sample tokens from the distribution of a model, or from its likeliest part.

n: rows   v: vocabulary   c: candidates
"""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from regard.decoding.constraints import UNCONSTRAINED, BatchConstraints, Constraints
from regard.decoding.greedy import check_count, generate
from regard.decoding.stepper import (
    Hypothesis,
    MemoryT,
    StateT,
    Stepper,
    check_log_probs,
    place_search,
)
from regard.decoding.topk import PIECE_SIZE, topk_candidates
from regard.errors import InputError

GOLDEN_GAMMA = -0x61C8864680B583EB  # 2^64 / the golden ratio, odd, as a signed number
ROUNDING_TOLERANCE = 1e-6  # of the mass that top_p keeps


@dataclass(frozen=True)
class SamplingOptions:
    """Options of sampling: divide logits by the temperature, then truncate in this order.

        top_k    keep the k likeliest tokens
        top_p    keep the likeliest tokens that hold a mass p of the rest (Holtzman et al. 2020)
        min_p    keep tokens at least p times as likely as the likeliest one (Nguyen et al. 2024)

    None truncates nothing. Among equal probabilities, lower ids are kept.
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None

    def __post_init__(self) -> None:
        if not 0 < self.temperature < float("inf"):
            raise InputError(
                f"temperature must be positive and finite, not {self.temperature}; "
                "use greedy search for the likeliest token at each step"
            )
        if self.top_k is not None and self.top_k < 1:
            raise InputError(f"top_k must be 1 or more, not {self.top_k}")
        for name, share in (("top_p", self.top_p), ("min_p", self.min_p)):
            if share is not None and not 0 < share <= 1:
                raise InputError(f"{name} must be in (0, 1], not {share}")


PLAIN_SAMPLING = SamplingOptions()


@torch.inference_mode()
def sample(
    stepper: Stepper[MemoryT, StateT],
    memory: MemoryT,
    seeds: Sequence[int],
    options: SamplingOptions = PLAIN_SAMPLING,
    *,
    copies: int = 1,
    constraints: Constraints = UNCONSTRAINED,
) -> list[list[Hypothesis]]:
    """Return `copies` outputs for each input, sampled with the seed of that input.

    The outputs of an input depend on its seed, but not on other inputs, its index in the batch or
    the number of copies. Log-probabilities are those before temperature and truncation.
    """
    if copies < 1:
        raise InputError(f"copies must be 1 or more, not {copies}")
    if not check_count(len(seeds)):
        return []
    stepper, device = place_search(stepper, memory)
    batch_constraints = BatchConstraints(constraints, len(seeds), device)
    row_keys = [noise_key(seed, copy) for seed in seeds for copy in range(copies)]
    keys = torch.tensor(row_keys, device=device)

    def choose(log_probs: Tensor, rows: Tensor, position: int) -> Tensor:
        check_log_probs(log_probs.amax(1).tolist(), position)
        return gumbel_choice(
            truncated_masses(log_probs, options),
            mix_bits(keys[rows] + torch.tensor(position, device=device) * GOLDEN_GAMMA),
        )

    state = stepper.start(memory)
    if copies > 1:
        inputs = torch.arange(len(seeds), device=device)
        state = stepper.select(state, inputs.repeat_interleave(copies))
    outputs = generate(stepper, state, batch_constraints, choose, copies)
    return [outputs[start : start + copies] for start in range(0, len(outputs), copies)]


def truncated_masses(
    log_probs: Float[Tensor, "n v"], options: SamplingOptions
) -> Float[Tensor, "n v"]:
    """Return the probability of each token relative to the likeliest; 0 if it is truncated."""
    peaks = log_probs.amax(1, keepdim=True).clamp(min=torch.finfo(log_probs.dtype).min)
    if options.top_k is None:
        return truncate_in_place(log_probs - peaks, options)
    _, _, ids = topk_candidates(log_probs, log_probs.new_zeros(len(log_probs), 1), options.top_k)
    candidate_masses = truncate_in_place(log_probs.gather(1, ids) - peaks, options)
    return torch.zeros_like(log_probs).scatter_(1, ids, candidate_masses)


def truncate_in_place(
    log_ratios: Float[Tensor, "n c"], options: SamplingOptions
) -> Float[Tensor, "n c"]:
    """exp(log_ratios / temperature), truncated by top_p and min_p; overwrites `log_ratios`."""
    if options.temperature != 1:
        log_ratios /= options.temperature
    masses = log_ratios.exp_()
    if options.top_p is not None and options.top_p < 1:
        masses = keep_nucleus(masses, options.top_p)
    return masses if options.min_p is None else masses.masked_fill_(masses < options.min_p, 0.0)


def keep_nucleus(masses: Float[Tensor, "n c"], share: float) -> Float[Tensor, "n c"]:
    """Set all but the fewest masses that hold this share to 0, in place.

    Among equal masses, the first are kept.
    """
    sorted_masses = sorted_rows(masses)
    # masses before the cutoff hold at most 1 - share
    cutoff = first_above_share(sorted_masses, 1 - share + ROUNDING_TOLERANCE)
    min_mass, mass_below = (
        sorted_masses.gather(1, cutoff),
        sorted_masses.gather(1, (cutoff - 1).clamp(min=0)),
    )
    tied_rows = ((min_mass == mass_below) & (cutoff > 0)).nonzero()[:, 0]  # cut within equals
    if len(tied_rows):
        is_tied = masses[tied_rows] == min_mass[tied_rows]
        n_kept = (
            masses.shape[1]
            - cutoff[tied_rows]
            - (masses[tied_rows] > min_mass[tied_rows]).sum(1, keepdim=True)
        )
        masses[tied_rows] = masses[tied_rows].masked_fill(
            is_tied & (is_tied.cumsum(1) > n_kept), 0.0
        )
    return masses.masked_fill_(masses < min_mass, 0.0)


def sorted_rows(rows: Float[Tensor, "n c"]) -> Float[Tensor, "n c"]:
    """Sort each row. numpy's sort is vectorized: 64 rows of 10,000 take 3 ms, torch's 48."""
    if rows.device.type != "cpu":
        return rows.sort(1)[0]
    return torch.from_numpy(np.sort(rows.numpy(), axis=1))


def first_above_share(masses: Float[Tensor, "n c"], share: float) -> Int[Tensor, "n 1"]:
    """Return the first column where the running sum exceeds this share of the row's sum.

    Sums of pieces come first: 64 rows of 10,000 take 0.6 ms, and 8 ms with running sums alone.
    """
    size = masses.shape[1]
    piece_sums = split_into_pieces(masses).sum(2, dtype=torch.float64).cumsum(1)
    threshold = share * piece_sums[:, -1:]
    piece = torch.searchsorted(piece_sums, threshold, right=True).clamp(max=piece_sums.shape[1] - 1)
    before = F.pad(piece_sums, (1, 0)).gather(1, piece)
    offsets = torch.arange(PIECE_SIZE, device=masses.device)
    columns = (piece * PIECE_SIZE + offsets).clamp(max=size - 1)
    running_sums = before + masses.gather(1, columns).double().cumsum(1)
    offset = torch.searchsorted(running_sums, threshold, right=True).clamp(max=PIECE_SIZE - 1)
    return columns.gather(1, offset)


def gumbel_choice(masses: Float[Tensor, "n v"], keys: Int[Tensor, " n"]) -> Int[Tensor, " n"]:
    """Sample a token for each row: argmax(log mass + Gumbel noise), first over pieces.

    The noise of a token depends only on the key of its row and on its id. So a rounding error in
    the masses changes about one sample in a million: it needs two sums that are nearly equal.
    Comparing a running sum with a random number would be less stable, because a rounding error
    moves all of its 10,000 borders.
    """
    masses_by_piece = split_into_pieces(masses)
    sums = masses_by_piece.sum(2, dtype=torch.float64)
    piece = (sums.log() + gumbel_noise(keys, sums.shape[1], 0)).argmax(1, keepdim=True)
    rows = torch.arange(len(masses_by_piece), device=masses.device)
    piece_masses = masses_by_piece[rows, piece[:, 0]].double()
    offset = (piece_masses.log() + gumbel_noise(keys, PIECE_SIZE, sums.shape[1])).argmax(
        1, keepdim=True
    )
    return (piece * PIECE_SIZE + offset)[:, 0].clamp(max=masses.shape[1] - 1)


def split_into_pieces(masses: Float[Tensor, "n v"]) -> Float[Tensor, "n p piece"]:
    """Split rows into pieces; pad the last one with 0."""
    missing = -masses.shape[1] % PIECE_SIZE
    return (F.pad(masses, (0, missing)) if missing else masses).unflatten(1, (-1, PIECE_SIZE))


def noise_key(seed: int, copy: int) -> int:
    """Return the seed of a row's noise; it is the same on every machine."""
    return Random(f"{seed} {copy}").getrandbits(63)


def gumbel_noise(keys: Int[Tensor, " n"], count: int, start: int) -> Float[Tensor, "n count"]:
    """-log(-log u) for uniform u; u is a hash of the key of the row and a counter."""
    counter = torch.arange(start + 1, start + count + 1, device=keys.device)
    bits = mix_bits(keys[:, None] + counter * GOLDEN_GAMMA)
    uniform = ((bits & (2**52 - 1)).double() + 0.5) * 2.0**-52
    return -(-uniform.log()).log()


def mix_bits(numbers: Int[Tensor, "*n"]) -> Int[Tensor, "*n"]:
    """Hash numbers to 64 pseudo-random bits (SplitMix64: Steele et al. 2014)."""
    for shift, factor in ((30, -0x40A7B892E31B1A47), (27, -0x6B2FB644ECCEEE15)):
        numbers = (numbers ^ ((numbers >> shift) & (2 ** (64 - shift) - 1))) * factor
    return numbers ^ ((numbers >> 31) & (2**33 - 1))
