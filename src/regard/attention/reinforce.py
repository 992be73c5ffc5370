"""Hard attention: a sampled slot, trained by REINFORCE (Xu et al. 2015, sec. 4.1)."""

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
from regard.attention.observe import ModuleTree
from regard.attention.validation import check_positive
from regard.errors import InputError


class AttentionEpisode:
    """Log-probabilities and entropies of the slots sampled for one batch of sequences."""

    def __init__(self, expectation_rate: float):
        self.expectation_rate = expectation_rate
        self.uses_expectation: Tensor | None = None
        self.log_prob: dict[nn.Module, list[Tensor]] = defaultdict(list)
        self.entropy: dict[nn.Module, list[Tensor]] = defaultdict(list)

    def expectation_mask(self, energy: EnergyTensor) -> Bool[Tensor, "..."]:
        """Return which sequences (first axis) read the expectation: one draw for each sequence."""
        if self.uses_expectation is None:
            self.uses_expectation = (
                torch.rand(energy.shape[0], device=energy.device) < self.expectation_rate
            )
        if self.uses_expectation.shape[0] != energy.shape[0]:
            expected, actual = self.uses_expectation.shape[0], energy.shape[0]
            raise InputError(
                f"batch has {actual} sequences, but the episode began with {expected}; "
                "use one `sample_attention` for each batch"
            )
        return self.uses_expectation.view(-1, *[1] * (energy.ndim - 1))

    def total(
        self, records: dict[nn.Module, list[Tensor]], valid: Bool[Tensor, "b t"] | None
    ) -> Float[Tensor, " b"]:
        """Sum over steps, heads and attentions; `valid` marks the real steps (None: all)."""
        if not records:
            raise InputError(
                "the episode has no samples; run a model with hard attention inside "
                "`with sample_attention(model)`"
            )
        sums = []
        for tensors in records.values():
            steps = torch.cat(tensors, -1)  # [b, (heads,) t]
            if valid is not None:
                steps = steps * valid.view(len(valid), *[1] * (steps.ndim - 2), -1)
            sums.append(steps.flatten(1).sum(-1))
        return torch.stack(sums).sum(0)


class ReinforceSampler(nn.Module):
    """A single slot: sampled from the softmax in training, the best one in evaluation.

    The sample has no gradient. Train inside `with sample_attention(model) as episode`, and add
    `ReinforceLoss()(log_likelihood, episode)` to the loss.

    >>> import torch
    >>> ReinforceSampler().eval()(torch.tensor([[1.0, 3.0, 2.0]]))
    tensor([[0., 1., 0.]])
    """

    def __init__(self):
        super().__init__()
        self.episode: AttentionEpisode | None = None

    def forward(self, energy: EnergyTensor) -> WeightTensor:
        if not self.training:
            return one_hot_slot(energy, energy)
        if self.episode is None:
            raise RuntimeError(
                "hard attention samples slots in training; run it inside "
                "`with sample_attention(model)`, or call model.eval() to take the best slot"
            )
        expected, sample = softmax(energy), sample_slot(energy)
        log = expected.clamp(min=torch.finfo(energy.dtype).tiny).log()
        expectation_mask = self.episode.expectation_mask(energy)
        # differs: where the expectation is read, it has a gradient; the authors' code stops it
        log_prob = (sample * log).sum(-1).masked_fill(expectation_mask.squeeze(-1), 0.0)
        self.episode.log_prob[self].append(log_prob)
        self.episode.entropy[self].append(-(expected * log).sum(-1))
        return torch.where(expectation_mask, expected, sample)


@contextmanager
def sample_attention(
    model: ModuleTree, expectation_rate: float = 0.5
) -> Generator[AttentionEpisode]:
    """Sample the slots of each sequence, or read the expectation with rate `expectation_rate`."""
    if not 0 <= expectation_rate <= 1:
        raise InputError(f"expectation_rate must be in [0, 1], not {expectation_rate}")
    episode = AttentionEpisode(expectation_rate)
    samplers = [m for m in model.modules() if isinstance(m, ReinforceSampler)]
    if not samplers:
        raise InputError(
            f"model {type(model).__name__} has no ReinforceSampler; "
            "build its attention with normalize='reinforce'"
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

    A reward belongs to a whole sequence. The baseline b starts at 0. It reduces the variance of the
    gradient and does not change its mean.
    """

    baseline: Tensor

    def __init__(self, weight: float = 1.0, entropy: float = 0.01, decay: float = 0.9):
        super().__init__()
        check_positive("weight", weight)
        if not 0 <= decay < 1:
            raise InputError(f"decay must be in [0, 1), not {decay}")
        self.weight, self.entropy, self.decay = weight, entropy, decay
        self.register_buffer("baseline", torch.zeros(()))

    def forward(
        self,
        log_likelihood: Float[Tensor, " b"],
        episode: AttentionEpisode,
        valid: Bool[Tensor, "b t"] | None = None,
    ) -> Float[Tensor, " b"]:
        """Return the loss term of each sequence; `valid` marks the real steps (None: all)."""
        reward = log_likelihood.detach()
        advantage = reward - self.baseline
        log_prob = episode.total(episode.log_prob, valid)
        entropy = episode.total(episode.entropy, valid)
        if self.training:
            self.baseline.mul_(self.decay).add_(reward.mean(), alpha=1 - self.decay)
        return -(self.weight * advantage * log_prob + self.entropy * entropy)
