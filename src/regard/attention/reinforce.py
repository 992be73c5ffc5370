"""Hard attention: one slot is drawn; REINFORCE teaches where to look (Xu et al. 2015, sec. 4.1)."""

from collections import defaultdict
from collections.abc import Generator
from contextlib import contextmanager

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard.attention.normalizers import (
    EnergyTensor,
    WeightTensor,
    one_hot_slot,
    sample_slot,
    softmax,
)
from regard.attention.validation import check_positive


class AttentionEpisode:
    """What was drawn while a batch of sequences was processed: log-probabilities and entropies."""

    def __init__(self, expectation_rate: float):
        self.expectation_rate = expectation_rate
        self.uses_expectation: Tensor | None = None
        self.log_prob: dict[nn.Module, list[Tensor]] = defaultdict(list)
        self.entropy: dict[nn.Module, list[Tensor]] = defaultdict(list)

    def expectation_mask(self, energy: EnergyTensor) -> Bool[Tensor, "..."]:
        """Which sequences (first axis) read the expectation: one toss for a whole sequence."""
        if self.uses_expectation is None:
            self.uses_expectation = (
                torch.rand(energy.shape[0], device=energy.device) < self.expectation_rate
            )
        if self.uses_expectation.shape[0] != energy.shape[0]:
            expected, actual = self.uses_expectation.shape[0], energy.shape[0]
            raise ValueError(f"an episode of {expected} sequences was given a batch of {actual}")
        return self.uses_expectation.view(-1, *[1] * (energy.ndim - 1))

    def total(
        self, records: dict[nn.Module, list[Tensor]], valid: Bool[Tensor, "b t"] | None
    ) -> Float[Tensor, " b"]:
        """Summed over steps (the real ones, where `valid` is given), heads and attentions."""
        if not records:
            raise ValueError("nothing was drawn in this episode: has the model hard attention?")
        sums = []
        for tensors in records.values():
            steps = torch.cat(tensors, -1)  # [b, (heads,) t]
            if valid is not None:
                steps = steps * valid.view(len(valid), *[1] * (steps.ndim - 2), -1)
            sums.append(steps.flatten(1).sum(-1))
        return torch.stack(sums).sum(0)


class ReinforceSampler(nn.Module):
    """One slot, drawn from the softmax in training, otherwise the best; the draw has no gradient.

    Training runs inside `with sampling(model) as episode`, and adds
    `Reinforce()(log_likelihood, episode)` to its loss.
    """

    def __init__(self):
        super().__init__()
        self.episode: AttentionEpisode | None = None

    def forward(self, energy: EnergyTensor) -> WeightTensor:
        if not self.training:
            return one_hot_slot(energy, energy)
        if self.episode is None:
            raise RuntimeError(
                "hard attention draws slots in training: run it inside `with sampling(model)`, "
                "or call model.eval() to take the best slot"
            )
        expected, sample = softmax(energy), sample_slot(energy)
        log = expected.clamp(min=torch.finfo(energy.dtype).tiny).log()
        expectation_mask = self.episode.expectation_mask(energy)
        # differs: where the expectation is read, its gradient flows; the authors' code stops it
        log_prob = (sample * log).sum(-1).masked_fill(expectation_mask.squeeze(-1), 0.0)
        self.episode.log_prob[self].append(log_prob)
        self.episode.entropy[self].append(-(expected * log).sum(-1))
        return torch.where(expectation_mask, expected, sample)


@contextmanager
def sample_attention(
    model: nn.Module, expectation_rate: float = 0.5
) -> Generator[AttentionEpisode]:
    """Each sequence draws its slots, or with probability `expected` reads their expectation."""
    if not 0 <= expectation_rate <= 1:
        raise ValueError(f"expectation_rate must be in [0, 1], not {expectation_rate}")
    episode = AttentionEpisode(expectation_rate)
    samplers = [m for m in model.modules() if isinstance(m, ReinforceSampler)]
    if not samplers:
        raise ValueError(
            f"model {type(model).__name__} has no attention that is a ReinforceSampler"
        )
    for module in samplers:
        module.episode = episode
    try:
        yield episode
    finally:
        for module in samplers:
            module.episode = None


class ReinforceLoss(nn.Module):
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
        episode: AttentionEpisode,
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
