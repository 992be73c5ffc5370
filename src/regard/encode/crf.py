"""A conditional random field over a sequence of tags: Lafferty et al. 2001; Lample et al. 2016.

    score(x, y) = sum_t E[t, y_t] + sum_{t>0} A[y_{t-1}, y_t] + first[y_0] + last[y_T]
    log p(y | x) = score(x, y) - log sum_{y'} exp score(x, y')       summed by the forward recursion
    best        = argmax_y score(x, y)                               found by Viterbi's

Pairs that `allowed` forbids, and tags that may not begin or end, take part in neither sum nor best.
b: sentences   t: positions   k: tags
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.attend.check import check_positive, check_valid

LEAST = 1e-300  # beside the likeliest tag; the log of 0 has no gradient
NEVER = -1e4  # in sums: exp of it is 0, and gradients stay finite where -inf would give none


class CRF(nn.Module):
    """`allowed[i, j]`: tag j may come right after tag i; `begins` and `ends`: it may stand there.

    What is not given is all allowed. Padding must stand at the end of rows.
    """

    may: Tensor
    may_begin: Tensor
    may_end: Tensor

    def __init__(
        self,
        tags: int,
        allowed: Bool[Tensor, "k k"] | None = None,
        begins: Bool[Tensor, " k"] | None = None,
        ends: Bool[Tensor, " k"] | None = None,
    ):
        super().__init__()
        check_positive("tags", tags)
        self.tags = tags
        self.between = nn.Parameter(torch.zeros(tags, tags))
        self.first, self.last = (nn.Parameter(torch.zeros(tags)) for _ in range(2))
        all_of = torch.ones(tags, dtype=torch.bool)
        rules = (allowed, all_of.expand(tags, tags)), (begins, all_of), (ends, all_of)
        for name, (rule, free) in zip(("may", "may_begin", "may_end"), rules, strict=True):
            found = free if rule is None else rule
            if found.shape != free.shape:
                raise ValueError(
                    f"rules of {tags} tags have shape {tuple(free.shape)}, not {tuple(found.shape)}"
                )
            self.register_buffer(name, found.clone(), persistent=False)

    def forward(
        self,
        energy: Float[Tensor, "b t k"],
        tags: Int[Tensor, "b t"],
        valid: Bool[Tensor, "b t"],
    ) -> Float[Tensor, " b"]:
        """log p of each row of tags."""
        check_valid(valid, energy.shape[:2])
        return self.score(energy, tags, valid) - self.total(energy, valid)

    def score(self, energy: Tensor, tags: Tensor, valid: Tensor) -> Float[Tensor, " b"]:
        first, between, last = self.penalised()
        tags = tags.masked_fill(~valid, 0)
        each = energy.gather(-1, tags[..., None])[..., 0].masked_fill(~valid, 0.0).sum(1)
        pairs = between[tags[:, :-1], tags[:, 1:]].masked_fill(~valid[:, 1:], 0.0).sum(1)
        final = tags.gather(1, (valid.sum(1) - 1).clamp(min=0)[:, None])[:, 0]
        whole = each + pairs + first[tags[:, 0]] + last[final]
        return whole.masked_fill(~valid[:, 0], 0.0)

    def total(self, energy: Tensor, valid: Tensor) -> Float[Tensor, " b"]:
        """log of the sum over all rows of tags.

        A step is a product of matrices, of what is less likely than the likeliest tag: with as many
        exponentials as there are tags, not pairs. In float64, where 1e-300 of it is still told.
        """
        first, between, last = (part.double() for part in self.penalised())
        energies, onwards = energy.double().unbind(1), between.exp()
        reached = first + energies[0]
        for step, here in enumerate(energies[1:], 1):
            top = reached.amax(1, keepdim=True)
            after = ((reached - top).exp() @ onwards).clamp(min=LEAST).log() + top + here
            reached = torch.where(valid[:, step, None], after, reached)
        total = (reached + last).logsumexp(-1).masked_fill(~valid[:, 0], 0.0)
        return total.to(energy.dtype)

    def penalised(self) -> tuple[Tensor, Tensor, Tensor]:
        """First, between and last, low where it is not allowed."""
        return (
            self.first.masked_fill(~self.may_begin, NEVER),
            self.between.masked_fill(~self.may, NEVER),
            self.last.masked_fill(~self.may_end, NEVER),
        )

    @torch.no_grad()
    def best(
        self, energy: Float[Tensor, "b t k"], valid: Bool[Tensor, "b t"]
    ) -> Int[Tensor, "b t"]:
        """The likeliest row of tags, of those that are allowed; 0 at padding."""
        check_valid(valid, energy.shape[:2])
        between = self.between.masked_fill(~self.may, -torch.inf)
        reached = self.first.masked_fill(~self.may_begin, -torch.inf) + energy[:, 0]
        came = []
        for step in range(1, energy.shape[1]):
            highest, from_tag = (reached[:, :, None] + between).max(1)
            stays = torch.arange(self.tags, device=energy.device).expand_as(from_tag)
            real = valid[:, step, None]
            reached = torch.where(real, highest + energy[:, step], reached)
            came.append(torch.where(real, from_tag, stays))
        tag = (reached + self.last.masked_fill(~self.may_end, -torch.inf)).argmax(-1)
        row = [tag]
        for from_tag in reversed(came):
            tag = from_tag.gather(-1, tag[:, None])[:, 0]
            row.append(tag)
        return torch.stack(row[::-1], 1).masked_fill(~valid, 0)
