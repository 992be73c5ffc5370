"""Proximal policy optimization over whole episodes.

    A_t = sum_k (g l)^k d_{t+k}         d_t = r_t + g V_{t+1} - V_t              (GAE)
    loss = - min(q A, clip(q, 1 - e, 1 + e) A) + c_v (V - R)^2 - c_h H           (PPO)

where q = p(a_t | x_1..t) / p_old, R = A + V and H is the entropy of the policy. Schulman et al.
2016 (GAE) and 2017 (PPO).

# differs: PPO where Mishra et al. 2018 use TRPO; both keep a step near the policy that has acted.
# Some episodes start with random actions, which are not learned from. Otherwise a policy that
# always pulls the same arm first would not learn what to do after another.
e: environments   t: steps   a: actions
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


@dataclass(frozen=True)
class Rollout:
    """Episodes side by side: actions, rewards, and the states in which the actions were taken."""

    actions: Int[Tensor, "e t"]
    rewards: Float[Tensor, "e t"]
    states: Int[Tensor, "e t"]
    log_probs: Float[Tensor, "e t"]  # of the actions
    values: Float[Tensor, "e t"]  # expected return from each step on
    on_policy: Bool[Tensor, "e t"]  # whether the policy chose the action, not chance


@dataclass(frozen=True)
class RolloutBatch:
    """Episodes to learn from; a regret is the return of the best policy minus that of this one."""

    actions: Int[Tensor, "e t"]
    rewards: Float[Tensor, "e t"]
    states: Int[Tensor, "e t"]
    log_probs: Float[Tensor, "e t"]
    advantages: Float[Tensor, "e t"]
    returns: Float[Tensor, "e t"]
    on_policy: Bool[Tensor, "e t"]
    regrets: Float[Tensor, " e"]


@dataclass(frozen=True)
class PpoOptions:
    """Options of rollouts, and weights of the parts of the loss."""

    environments: int = 1024  # of a rollout
    epochs: int = 3  # passes over a rollout
    discount: float = 1.0
    gae_lambda: float = 0.5
    exploration_rate: float = 0.0  # share of episodes that start with random actions
    clip_ratio: float = 0.2  # largest relative change of an action's probability
    value_weight: float = 5.0
    entropy_weight: float = 0.02  # at the first step
    total_steps: int | None = None  # optimizer steps in which the entropy weight falls to 0

    def entropy_weight_at(self, step: int) -> float:
        """Return the weight of the entropy after `step` optimizer steps."""
        remaining = 1 - step / self.total_steps if self.total_steps else 1.0
        return self.entropy_weight * remaining


def generalized_advantages(
    rewards: Float[Tensor, "e t"], values: Float[Tensor, "e t"], discount: float, trace: float
) -> Float[Tensor, "e t"]:
    """A_t = d_t + g l A_{t+1}, from the last step back; the value after it is 0."""
    advantages = torch.zeros_like(rewards)
    advantage, next_values = torch.zeros_like(rewards[:, 0]), torch.zeros_like(rewards[:, 0])
    for step in reversed(range(rewards.shape[1])):
        td_error = rewards[:, step] + discount * next_values - values[:, step]
        advantage = td_error + discount * trace * advantage
        advantages[:, step], next_values = advantage, values[:, step]
    return advantages


def rollout_tensors(
    rollout: Rollout, regrets: Float[Tensor, " e"], discount: float, trace: float
) -> dict[str, Tensor]:
    """Return the fields of a `RolloutBatch`; advantages are scaled to mean 0 and deviation 1."""
    advantages = generalized_advantages(rollout.rewards, rollout.values, discount, trace)
    returns, on_policy_advantages = advantages + rollout.values, advantages[rollout.on_policy]
    deviation = (
        on_policy_advantages.std()
        if on_policy_advantages.numel() > 1
        else on_policy_advantages.new_ones(())
    )
    return {
        "actions": rollout.actions,
        "rewards": rollout.rewards,
        "states": rollout.states,
        "log_probs": rollout.log_probs,
        "advantages": (advantages - on_policy_advantages.mean()) / (deviation + 1e-8),
        "returns": returns,
        "on_policy": rollout.on_policy,
        "regrets": regrets,
    }


def ppo_loss(
    batch: RolloutBatch,
    logits: Float[Tensor, "e t a"],
    value_errors: Float[Tensor, "e t"],
    options: PpoOptions,
    entropy_weight: float,
) -> Float[Tensor, ""]:
    """Return the loss of the policy and its values: the mean over steps, summed over episodes."""
    log_probs = logits.log_softmax(-1)
    action_log_probs = log_probs.gather(-1, batch.actions[..., None])[..., 0]
    # the ratio of a random action could be infinite, if it is nearly impossible for the policy
    ratio = (action_log_probs - batch.log_probs).masked_fill(~batch.on_policy, 0).exp()
    clipped_ratio = ratio.clamp(1 - options.clip_ratio, 1 + options.clip_ratio)
    surrogate = torch.minimum(ratio * batch.advantages, clipped_ratio * batch.advantages)
    entropy = -(log_probs.exp() * log_probs).sum(-1)
    total = options.value_weight * value_errors.square() - surrogate - entropy_weight * entropy
    return (total * batch.on_policy).mean(1).sum()
