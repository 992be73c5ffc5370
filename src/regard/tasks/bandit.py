"""Acting in worlds that are found out on the way: a policy that learns within an episode.

    x_t = [a_{t-1}; r_{t-1}]            and, of an mdp, [done_{t-1}; s_t]; zeros before the first
    A_t = sum_k (g l)^k d_{t+k}         d_t = r_t + g V_{t+1} - V_t              (GAE)
    loss = - min(q A, clip(q, 1 - e, 1 + e) A) + c_v (V - R)^2 - c_h H           (PPO)

where q = p(a_t | x_1..t) / p_old, R = A + V and H is the entropy of what could be done. Mishra et
al. 2018, sec. 4.2, after Duan et al. 2016; Schulman et al. 2016 (GAE) and 2017 (PPO).

# differs: PPO where the paper has TRPO; both keep a step near the policy that has played. Some
# lives begin by chance, and what is done then is not learnt from: a policy that always pulls one
# arm first would not know what to do after another.
A model has `episode`, `begin(rows)` and `read(state, inputs)`, and says a logit for each action,
then V, as a share of `steps`: rewards are of the size of 1.
e: worlds   t: steps   i: what is seen   a: actions
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.attention.observe import observe
from regard.data.synthetic.environments import Environments, EnvironmentSpec, Floats
from regard.tasks.loss import Loss

EPISODES_PER_BATCH = 2048  # worlds that are played side by side, when none is learnt from


@dataclass(frozen=True)
class Rollout:
    """Lives, side by side: what was done, what it paid, and where one was before."""

    actions: Int[Tensor, "e t"]
    rewards: Float[Tensor, "e t"]
    states: Int[Tensor, "e t"]
    log_probs: Float[Tensor, "e t"]  # log p of what was done
    values: Float[Tensor, "e t"]  # what was expected, from there on
    on_policy: Bool[Tensor, "e t"]  # chosen by the model, not by chance


@dataclass(frozen=True)
class RolloutBatch:
    """What a model learns from; `missed` is what those get more who know their world."""

    actions: Int[Tensor, "e t"]
    rewards: Float[Tensor, "e t"]
    states: Int[Tensor, "e t"]
    log_probs: Float[Tensor, "e t"]
    advantages: Float[Tensor, "e t"]
    returns: Float[Tensor, "e t"]
    on_policy: Bool[Tensor, "e t"]
    regrets: Float[Tensor, " e"]


class PpoCoefficients(NamedTuple):
    """Of the parts of a loss; `clip` is how far p may go from p_old, as a share."""

    clip: float = 0.2
    value: float = 5.0
    entropy: float = 0.01


class ActionPrediction(NamedTuple):
    """What is done next (from 0), how likely each action is, and what is expected of the rest."""

    action: int
    probabilities: list[float]
    value: float


class BanditTask:
    """A model that acts in worlds of one form."""

    def __init__(self, model: nn.Module, form: EnvironmentSpec):
        self.model: Any = model  # any with `episode`, `begin` and `read`
        self.form = form

    @staticmethod
    def input_width(form: EnvironmentSpec) -> int:
        """Of what is seen at a step."""
        return form.actions + 1 + (form.states + 1 if form.states > 1 else 0)

    def observations(
        self,
        actions: Int[Tensor, "e p"],
        rewards: Float[Tensor, "e p"],
        states: Int[Tensor, "e s"],
        start: int = 0,
    ) -> Float[Tensor, "e s i"]:
        """At each state: what was done before it and what it paid, and, of an mdp, the state.

        `start` is the number of the first state. Before the very first one, nothing was done: there
        is one action less than there are states.
        """
        form, count = self.form, states.shape[1]
        inputs = torch.cat([F.one_hot(actions, form.actions).to(rewards), rewards[..., None]], -1)
        inputs = F.pad(inputs, (0, 0, count - inputs.shape[1], 0))
        if form.states == 1:
            return inputs
        step = torch.arange(start, start + count)
        done = ((step % form.horizon == 0) & (step > 0)).to(rewards)
        state_inputs = F.one_hot(states, form.states).to(rewards)
        return torch.cat([inputs, done.expand(len(states), count)[..., None], state_inputs], -1)

    @torch.no_grad()
    def play(
        self,
        environments: Environments,
        *,
        greedy: bool = False,
        random_steps: Int[Tensor, " e"] | None = None,
    ) -> Rollout:
        """A life in each world, step by step; `best`: the likeliest action, always.

        `led`: in each world, so many first steps are by chance, whatever the model would do.
        """
        random_steps = (
            torch.zeros(len(environments), dtype=torch.long)
            if random_steps is None
            else random_steps
        )
        was_training = self.model.training
        self.model.eval()
        state, count = self.model.begin(len(environments)), len(environments)
        env_states = np.zeros(count, np.int64)
        last_actions, last_rewards = torch.zeros(count, 0, dtype=torch.long), torch.zeros(count, 0)
        trajectory: list[tuple[Tensor, ...]] = []
        for step in range(self.form.steps):
            current_states = torch.from_numpy(env_states)
            inputs = self.observations(last_actions, last_rewards, current_states[:, None], step)
            outputs, state = self.model.read(state, inputs)
            logits, value = self.logits_and_values(outputs[:, 0])
            log_probs = logits.log_softmax(-1)
            actions = (
                log_probs.argmax(-1) if greedy else torch.multinomial(log_probs.exp(), 1)[:, 0]
            )
            on_policy = random_steps <= step
            if not on_policy.all():
                actions = torch.where(
                    on_policy, actions, torch.randint_like(actions, self.form.actions)
                )
            rewards, env_states = environments.act(step, env_states, actions.numpy())
            last_actions, last_rewards = (
                actions[:, None],
                torch.from_numpy(rewards).float()[:, None],
            )
            action_log_probs = log_probs.gather(-1, last_actions)[:, 0]
            trajectory.append(
                (actions, last_rewards[:, 0], current_states, action_log_probs, value, on_policy)
            )
        self.model.train(was_training)
        return Rollout(*(torch.stack(column, 1) for column in zip(*trajectory, strict=True)))

    def logits_and_values(
        self, outputs: Float[Tensor, "*b o"]
    ) -> tuple[Float[Tensor, "*b a"], Tensor]:
        """Logits of actions, and the value; an output near 0 to 1 is one of the whole life."""
        return outputs[..., :-1], outputs[..., -1] * self.form.steps

    def collect_rollout(
        self,
        environments: Environments,
        discount: float,
        trace: float,
        exploration_rate: float = 0.0,
    ) -> dict[str, Tensor]:
        """One round: play, and say what each action was worth.

        A share `led` of the lives begins by chance, for any number of steps: who only ever begins
        in its own way never learns to go on from another's.
        """
        random_steps = torch.randint(1, max(self.form.steps, 2), (len(environments),))
        rollout = self.play(
            environments,
            random_steps=random_steps * (torch.rand(len(environments)) < exploration_rate),
        )
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
            "regrets": torch.from_numpy(environments.optimal_returns()).float()
            - rollout.rewards.sum(1),
        }

    def loss(self, batch: RolloutBatch, coefficients: PpoCoefficients) -> Loss:
        """Counted are lives. Its value is what they missed: the rest is there for its gradient."""
        inputs = self.observations(batch.actions[:, :-1], batch.rewards[:, :-1], batch.states)
        logits, values = self.logits_and_values(self.model.episode(inputs))
        log_probs = logits.log_softmax(-1)
        action_log_probs = log_probs.gather(-1, batch.actions[..., None])[..., 0]
        # what chance did may have been all but impossible: its ratio could be infinite
        ratio = (action_log_probs - batch.log_probs).masked_fill(~batch.on_policy, 0).exp()
        clipped_ratio = ratio.clamp(1 - coefficients.clip, 1 + coefficients.clip)
        surrogate = torch.minimum(ratio * batch.advantages, clipped_ratio * batch.advantages)
        entropy = -(log_probs.exp() * log_probs).sum(-1)
        value_error = ((values - batch.returns) / self.form.steps).square()  # as V is said
        total = coefficients.value * value_error - surrogate - coefficients.entropy * entropy
        total = (total * batch.on_policy).mean(1).sum()
        return Loss(total - total.detach() + batch.regrets.sum(), len(batch.regrets))

    def greedy_returns(self, environments: Environments) -> Floats:
        """What each life brings, the likeliest action being taken."""
        returns = list[Floats]()
        for start in range(0, len(environments), EPISODES_PER_BATCH):
            chunk = slice(start, start + EPISODES_PER_BATCH)
            chunk_environments = Environments(
                self.form,
                environments.mean_rewards[chunk],
                environments.cumulative_transitions[chunk],
                environments.noise[chunk],
            )
            returns.append(
                self.play(chunk_environments, greedy=True).rewards.double().sum(1).numpy()
            )
        return np.concatenate(returns)

    def parse_history(self, text: str, location: str) -> Float[Tensor, "1 s i"]:
        """What was seen in a life that is written as text."""
        action_list, rewards, states = self.form.parse_history(text, location)
        actions = torch.tensor([action_list], dtype=torch.long)
        return self.observations(
            actions, torch.tensor([rewards]).view(1, -1), torch.tensor([states])
        )

    @torch.no_grad()
    def predict(self, text: str, location: str) -> ActionPrediction:
        """What is done after this."""
        outputs = self.model.eval().episode(self.parse_history(text, location))[0, -1]
        logits, value = self.logits_and_values(outputs)
        probabilities = logits.softmax(-1).tolist()
        return ActionPrediction(int(np.argmax(probabilities)), probabilities, value.item())

    @torch.no_grad()
    def attention_weights(self, text: str, location: str = "TEXT") -> dict[str, Tensor]:
        """What each step looked at, of those before it and itself, by the attention's name."""
        with observe(self.model.eval()) as recorded:
            self.model.episode(self.parse_history(text, location))
        return {name: weights[0] for name, weights in recorded.joined().items()}

    def step_names(self, text: str) -> list[str]:
        """A name for each step: what was done before it, and where one was."""
        actions, rewards, states = self.form.parse_history(text, "TEXT")
        names = [
            "(begin)",
            *(f"{action + 1}:{reward:g}" for action, reward in zip(actions, rewards, strict=True)),
        ]
        if self.form.states == 1:
            return names
        return [f"{name} {state + 1}" for name, state in zip(names, states, strict=True)]


def generalized_advantages(
    rewards: Float[Tensor, "e t"], values: Float[Tensor, "e t"], discount: float, trace: float
) -> Float[Tensor, "e t"]:
    """A_t = d_t + g l A_{t+1}, from the last step back; after it nothing is expected."""
    advantages = torch.zeros_like(rewards)
    advantage, next_values = torch.zeros_like(rewards[:, 0]), torch.zeros_like(rewards[:, 0])
    for step in reversed(range(rewards.shape[1])):
        td_error = rewards[:, step] + discount * next_values - values[:, step]
        advantage = td_error + discount * trace * advantage
        advantages[:, step], next_values = advantage, values[:, step]
    return advantages
