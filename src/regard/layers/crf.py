"""A conditional random field over a sequence of tags: Lafferty et al. 2001; Lample et al. 2016.

    score(x, y) = sum_t E[t, y_t] + sum_{t>0} A[y_{t-1}, y_t] + first[y_0] + last[y_T]
    log p(y | x) = score(x, y) - log sum_{y'} exp score(x, y')       by the forward recursion
    best        = argmax_y score(x, y)                               by the Viterbi algorithm

Forbidden transitions, starts and ends take no part in the sum or in the maximum.
b: sentences   t: positions   k: tags
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.attention.validation import check_positive, check_valid
from regard.errors import InputError
from regard.layers.precision import to_double

MIN_FORWARD_PROBABILITY = 1e-250  # relative to the likeliest tag; float64 ends at 1e-308
FORBIDDEN_SCORE = -1e4  # exp of it is 0; with -inf, gradients would be NaN


class CRF(nn.Module):
    """A linear-chain CRF with optional hard constraints.

    `allowed_transitions[i, j]` says whether tag j may follow tag i. `allowed_starts` and
    `allowed_ends` say whether a tag may be the first or the last. None allows all. Padding must be
    at the end of a row.
    """

    may: Tensor
    may_begin: Tensor
    may_end: Tensor

    def __init__(
        self,
        tags: int,
        allowed_transitions: Bool[Tensor, "k k"] | None = None,
        allowed_starts: Bool[Tensor, " k"] | None = None,
        allowed_ends: Bool[Tensor, " k"] | None = None,
    ):
        super().__init__()
        check_positive("tags", tags)
        self.tags = tags
        self.between = nn.Parameter(torch.zeros(tags, tags))
        self.first, self.last = (nn.Parameter(torch.zeros(tags)) for _ in range(2))
        all_tags = torch.ones(tags, dtype=torch.bool)
        rules = (
            (allowed_transitions, all_tags.expand(tags, tags)),
            (allowed_starts, all_tags),
            (allowed_ends, all_tags),
        )
        for name, (rule, default) in zip(("may", "may_begin", "may_end"), rules, strict=True):
            permitted = default if rule is None else rule
            if permitted.shape != default.shape:
                raise InputError(
                    f"constraints of {tags} tags must have shape {tuple(default.shape)}, not "
                    f"{tuple(permitted.shape)}"
                )
            self.register_buffer(name, permitted.clone(), persistent=False)

    def forward(
        self,
        energy: Float[Tensor, "b t k"],
        tags: Int[Tensor, "b t"],
        valid: Bool[Tensor, "b t"],
    ) -> Float[Tensor, " b"]:
        """Return log p(tags | energy) of each row."""
        check_valid(valid, energy.shape[:2])
        return self.score(energy, tags, valid) - self.log_partition(energy, valid)

    def score(self, energy: Tensor, tags: Tensor, valid: Tensor) -> Float[Tensor, " b"]:
        first, between, last = self.penalized_scores()
        tags = tags.masked_fill(~valid, 0)
        emission = energy.gather(-1, tags[..., None])[..., 0].masked_fill(~valid, 0.0).sum(1)
        transition = between[tags[:, :-1], tags[:, 1:]].masked_fill(~valid[:, 1:], 0.0).sum(1)
        final = tags.gather(1, (valid.sum(1) - 1).clamp(min=0)[:, None])[:, 0]
        path_score = emission + transition + first[tags[:, 0]] + last[final]
        return path_score.masked_fill(~valid[:, 0], 0.0)

    def log_partition(self, energy: Tensor, valid: Tensor) -> Float[Tensor, " b"]:
        """Return log sum_{y'} exp score(x, y').

        A step is a matrix product of probabilities relative to the likeliest tag. It takes one
        exponential for each tag, not for each pair. If a tag is so unlikely that float64 has no
        number for it, the step adds the scores of all pairs instead.
        """
        first, between, last = map(to_double, self.penalized_scores())
        energies, transition_factors = to_double(energy).unbind(1), between.exp()
        valid = valid.to(between.device)
        tag_scores = first + energies[0]
        for step, emission in enumerate(energies[1:], 1):
            top = tag_scores.amax(1, keepdim=True)
            probabilities = (tag_scores - top).exp() @ transition_factors
            if probabilities.amin() > MIN_FORWARD_PROBABILITY:
                next_scores = probabilities.log() + top
            else:
                next_scores = (tag_scores[:, :, None] + between).logsumexp(1)
            tag_scores = torch.where(valid[:, step, None], next_scores + emission, tag_scores)
        total = (tag_scores + last).logsumexp(-1).masked_fill(~valid[:, 0], 0.0)
        return total.to(energy)

    def penalized_scores(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return `first`, `between` and `last` with FORBIDDEN_SCORE where it is not allowed."""
        return (
            self.first.masked_fill(~self.may_begin, FORBIDDEN_SCORE),
            self.between.masked_fill(~self.may, FORBIDDEN_SCORE),
            self.last.masked_fill(~self.may_end, FORBIDDEN_SCORE),
        )

    @torch.no_grad()
    def best_tags(
        self, energy: Float[Tensor, "b t k"], valid: Bool[Tensor, "b t"]
    ) -> Int[Tensor, "b t"]:
        """Return the likeliest allowed row of tags; 0 at padding."""
        check_valid(valid, energy.shape[:2])
        between = self.between.masked_fill(~self.may, -torch.inf)
        tag_scores = self.first.masked_fill(~self.may_begin, -torch.inf) + energy[:, 0]
        back_pointers = []
        for step in range(1, energy.shape[1]):
            highest, from_tag = (tag_scores[:, :, None] + between).max(1)
            stays = torch.arange(self.tags, device=energy.device).expand_as(from_tag)
            is_real = valid[:, step, None]
            tag_scores = torch.where(is_real, highest + energy[:, step], tag_scores)
            back_pointers.append(torch.where(is_real, from_tag, stays))
        tag = (tag_scores + self.last.masked_fill(~self.may_end, -torch.inf)).argmax(-1)
        path = [tag]
        for from_tag in reversed(back_pointers):
            tag = from_tag.gather(-1, tag[:, None])[:, 0]
            path.append(tag)
        return torch.stack(path[::-1], 1).masked_fill(~valid, 0)
