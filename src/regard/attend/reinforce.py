"""Hard attention: one slot is drawn; REINFORCE teaches where to look (Xu et al. 2015, sec. 4.1)."""

from collections import defaultdict
from collections.abc import Generator
from contextlib import contextmanager

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard.attend.check import check_positive
from regard.attend.normalise import Energy, Weights, draw, one_slot, softmax


class Episode:
    """What was drawn while a batch of sequences was processed: log-probabilities and entropies."""

    def __init__(self, expected: float):
        self.share = expected
        self.coin: Tensor | None = None
        self.log_prob: dict[nn.Module, list[Tensor]] = defaultdict(list)
        self.entropy: dict[nn.Module, list[Tensor]] = defaultdict(list)

    def takes_expectation(self, energy: Energy) -> Bool[Tensor, "..."]:
        """Which sequences (first axis) read the expectation: one toss for a whole sequence."""
        if self.coin is None:
            self.coin = torch.rand(energy.shape[0], device=energy.device) < self.share
        if self.coin.shape[0] != energy.shape[0]:
            one, other = self.coin.shape[0], energy.shape[0]
            raise ValueError(f"an episode of {one} sequences was given a batch of {other}")
        return self.coin.view(-1, *[1] * (energy.ndim - 1))

    def total(
        self, notes: dict[nn.Module, list[Tensor]], valid: Bool[Tensor, "b t"] | None
    ) -> Float[Tensor, " b"]:
        """Summed over steps (the real ones, where `valid` is given), heads and attentions."""
        if not notes:
            raise ValueError("nothing was drawn in this episode: has the model hard attention?")
        sums = []
        for parts in notes.values():
            steps = torch.cat(parts, -1)  # [b, (heads,) t]
            if valid is not None:
                steps = steps * valid.view(len(valid), *[1] * (steps.ndim - 2), -1)
            sums.append(steps.flatten(1).sum(-1))
        return torch.stack(sums).sum(0)


class Reinforced(nn.Module):
    """One slot, drawn from the softmax in training, otherwise the best; the draw has no gradient.

    Training runs inside `with sampling(model) as episode`, and adds
    `Reinforce()(log_likelihood, episode)` to its loss.
    """

    def __init__(self):
        super().__init__()
        self.episode: Episode | None = None

    def forward(self, energy: Energy) -> Weights:
        if not self.training:
            return one_slot(energy, energy)
        if self.episode is None:
            raise RuntimeError(
                "hard attention draws slots in training: run it inside `with sampling(model)`, "
                "or call model.eval() to take the best slot"
            )
        expected, drawn = softmax(energy), draw(energy)
        log = expected.clamp(min=torch.finfo(energy.dtype).tiny).log()
        soft = self.episode.takes_expectation(energy)
        # differs: where the expectation is read, its gradient flows; the authors' code stops it
        log_prob = (drawn * log).sum(-1).masked_fill(soft.squeeze(-1), 0.0)
        self.episode.log_prob[self].append(log_prob)
        self.episode.entropy[self].append(-(expected * log).sum(-1))
        return torch.where(soft, expected, drawn)


@contextmanager
def sampling(model: nn.Module, expected: float = 0.5) -> Generator[Episode]:
    """Each sequence draws its slots, or with probability `expected` reads their expectation."""
    if not 0 <= expected <= 1:
        raise ValueError(f"expected must be in [0, 1], not {expected}")
    episode = Episode(expected)
    hard = [m for m in model.modules() if isinstance(m, Reinforced)]
    if not hard:
        raise ValueError(f"model {type(model).__name__} has no attention that is Reinforced")
    for module in hard:
        module.episode = episode
    try:
        yield episode
    finally:
        for module in hard:
            module.episode = None


class Reinforce(nn.Module):
    """loss = -(lambda_r (log p(y|s) - b) log p(s) + lambda_e H(s)),  b <- 0.9 b + 0.1 log p(y|s)

    Rewards and baseline are of whole sequences. The baseline starts at 0, changes no mean, and
    takes variance away.
    """

    baseline: Tensor

    def __init__(self, weight: float = 1.0, entropy: float = 0.01, decay: float = 0.9):
        super().__init__()
        check_positive("weight", weight)
        if not 0 <= decay < 1:
            raise ValueError(f"decay must be in [0, 1), not {decay}")
        self.weight, self.entropy, self.decay = weight, entropy, decay
        self.register_buffer("baseline", torch.zeros(()))

    def forward(
        self,
        log_likelihood: Float[Tensor, " b"],
        episode: Episode,
        valid: Bool[Tensor, "b t"] | None = None,
    ) -> Float[Tensor, " b"]:
        """What each sequence adds to the loss; `valid` says which steps are real."""
        reward = log_likelihood.detach()
        advantage = reward - self.baseline
        log_prob = episode.total(episode.log_prob, valid)
        entropy = episode.total(episode.entropy, valid)
        if self.training:
            self.baseline.mul_(self.decay).add_(reward.mean(), alpha=1 - self.decay)
        return -(self.weight * advantage * log_prob + self.entropy * entropy)
