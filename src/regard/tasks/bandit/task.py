"""Acting in unknown environments: a policy that learns within an episode.

    x_t = [a_{t-1}; r_{t-1}]            and, in an MDP, [done_{t-1}; s_t]; zeros before the first

Mishra et al. 2018, sec. 4.2, after Duan et al. 2016; `ppo.py` has the loss. A model has `episode`,
`begin(rows)` and `read(state, inputs)`. Its output is a logit for each action, then the value V as
a share of `steps`: rewards are of the size of 1.
e: environments   t: steps   s: states   p: actions before them   i: inputs   a: actions
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, cast

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from regard.attention.observe import observe
from regard.batching.rollouts import RolloutBatches
from regard.batching.source import BatchSource
from regard.data.corpus import Corpus, Record
from regard.data.synthetic.environments import (
    ARRAY_FIELDS,
    Environments,
    EnvironmentSpec,
    Floats,
)
from regard.errors import InputError
from regard.files import JsonObject
from regard.metrics.bandit import (
    greedy_policy,
    mean_return,
    optimal_return,
    policy_returns,
    random_policy,
    thompson_policy,
)
from regard.models.protocols import AnyActingLearner
from regard.tasks.bandit import view
from regard.tasks.bandit.ppo import PpoOptions, Rollout, RolloutBatch, ppo_loss, rollout_tensors
from regard.tasks.base import (
    BatchOptions,
    FieldValue,
    InputField,
    Metrics,
    Prediction,
    ProgressCallback,
    Task,
)
from regard.tasks.loss import Loss
from regard.view.attention_map import AttentionMap
from regard.view.terminal import Surface

EPISODES_PER_BATCH = 2048  # environments that are played side by side in prediction
TRAINING_SEED_PREFIX = 3  # starts the seeds of training environments; dev and test have others
HISTORY = "history"  # field of a line of input; records of a corpus are environments


@dataclass(frozen=True)
class ActionPrediction(Prediction):
    """The next action (from 0), the probability of each action, and the expected return."""

    action: int
    probabilities: tuple[float, ...]
    value: float

    def as_dict(self) -> JsonObject:
        probabilities = {str(n): p for n, p in enumerate(self.probabilities, 1)}
        return {"action": self.action + 1, "probabilities": probabilities, "value": self.value}


@dataclass(frozen=True)
class EpisodePrediction(Prediction):
    """The actions of one episode with their rewards, as text, and the sum of the rewards.

    Actions and states count from 0. `probabilities` has those of all actions before each step.
    """

    total_reward: float
    actions: tuple[int, ...]
    rewards: tuple[float, ...]
    states: tuple[int, ...]
    probabilities: tuple[tuple[float, ...], ...]

    def as_dict(self) -> JsonObject:
        return {
            "text": self.text,
            "return": self.total_reward,
            "actions": [action + 1 for action in self.actions],
            "rewards": list(self.rewards),
            "states": [state + 1 for state in self.states] if any(self.states) else [],
            "probabilities": [list(row) for row in self.probabilities],
        }


class BanditTask(Task[Environments, RolloutBatch, AnyActingLearner]):
    """A policy for environments of one size.

    A record is an environment, or a `history`: the text of an episode so far. The prediction for
    an environment is an episode of likeliest actions, and for a history the next action.
    """

    name: ClassVar = "bandit"
    unit: ClassVar = "worlds"
    example_unit: ClassVar = "worlds"

    def __init__(
        self,
        model: AnyActingLearner,
        spec: EnvironmentSpec,
        *,
        ppo: PpoOptions | None = None,
        environment_seed: int = 0,
    ):
        self.model = model
        # an MDP has states as well, which a person types
        kind, example = ("actions", "1:0 2:1") if spec.states == 1 else ("text", "1 2:0 3 1:1 2")
        self.input_fields = (
            InputField(
                HISTORY,
                "Actions and rewards so far",
                kind,
                example,
                is_required=False,
                action_count=spec.actions,
            ),
        )
        self.spec, self.ppo, self.environment_seed = spec, ppo or PpoOptions(), environment_seed

    # --- training

    def examples(self, records: Iterable[Record]) -> Iterator[Environments]:
        """Yield environments one by one."""
        for record in records:
            yield Environments.from_records(self.spec, [record])

    def collate(self, examples: Sequence[Environments]) -> RolloutBatch:
        """Return one episode of the policy in each environment."""
        arrays = [
            np.concatenate([getattr(environment, name) for environment in examples])
            for name in ARRAY_FIELDS
        ]
        return RolloutBatch(**self.collect_rollout(Environments(self.spec, *arrays)))

    def batches(self, corpus: Corpus, options: BatchOptions) -> BatchSource[RolloutBatch]:  # noqa: ARG002
        """Return batches of episodes in new environments, played by the policy in training."""

        def play_rollout(index: int) -> dict[str, Tensor]:
            seed = [TRAINING_SEED_PREFIX, self.environment_seed, options.seed, index]
            rng = np.random.default_rng(seed)
            return self.collect_rollout(self.spec.sample(rng, self.ppo.environments))

        return RolloutBatches(
            play_rollout,
            episodes_per_batch=options.examples_per_batch or 1,
            passes=self.ppo.epochs,
            collate=lambda tensors: RolloutBatch(**tensors),
        )

    def collect_rollout(self, environments: Environments) -> dict[str, Tensor]:
        """Play an episode in each environment; return the fields of a `RolloutBatch`.

        A share `exploration_rate` of the episodes starts with a random number of random actions:
        the policy learns to continue after actions that it would not take.
        """
        ppo, count = self.ppo, len(environments)
        random_steps = torch.randint(1, max(self.spec.steps, 2), (count,))
        is_explored = torch.rand(count) < ppo.exploration_rate
        rollout = self.play(environments, random_steps=random_steps * is_explored)
        optimal_returns = torch.from_numpy(environments.optimal_returns()).float()
        regrets = optimal_returns - rollout.rewards.sum(1)
        return rollout_tensors(rollout, regrets, ppo.discount, ppo.gae_lambda)

    def loss(self, batch: RolloutBatch, step: int) -> Loss:
        """Return a loss with the gradient of PPO and the value of the regret, over episodes."""
        inputs = self.observations(batch.actions[:, :-1], batch.rewards[:, :-1], batch.states)
        logits, values = self.logits_and_values(self.model.episode(inputs))
        value_errors = (values - batch.returns) / self.spec.steps  # as the model outputs V
        entropy_weight = self.ppo.entropy_weight_at(step)
        total = ppo_loss(batch, logits, value_errors, self.ppo, entropy_weight)
        return Loss(total - total.detach() + batch.regrets.sum(), len(batch.regrets))

    def negative_log_likelihood(self, records: Iterable[Record]) -> Loss:
        """Return the regret: the return of the best policy minus that of the model."""
        environments = self.environments(list(records))
        regret = environments.optimal_returns().sum() - self.greedy_returns(environments).sum()
        return Loss(torch.tensor(regret), len(environments))

    # --- acting

    @staticmethod
    def input_width(spec: EnvironmentSpec) -> int:
        """Return the width of the input of a step."""
        return spec.actions + 1 + (spec.states + 1 if spec.states > 1 else 0)

    def observations(
        self,
        actions: Int[Tensor, "e p"],
        rewards: Float[Tensor, "e p"],
        states: Int[Tensor, "e s"],
        start: int = 0,
    ) -> Float[Tensor, "e s i"]:
        """Return the input at each state: the action before it, its reward, and an MDP's state.

        `start` is the step of the first state. No action precedes step 0, where actions are one
        fewer than states.
        """
        spec, count = self.spec, states.shape[1]
        inputs = torch.cat([F.one_hot(actions, spec.actions).to(rewards), rewards[..., None]], -1)
        inputs = F.pad(inputs, (0, 0, count - inputs.shape[1], 0))
        if spec.states == 1:
            return inputs
        step = torch.arange(start, start + count, device=states.device)
        done = ((step % spec.horizon == 0) & (step > 0)).to(rewards)
        state_inputs = F.one_hot(states, spec.states).to(rewards)
        return torch.cat([inputs, done.expand(len(states), count)[..., None], state_inputs], -1)

    @torch.no_grad()
    def play(
        self,
        environments: Environments,
        *,
        greedy: bool = False,
        random_steps: Int[Tensor, " e"] | None = None,
    ) -> Rollout:
        """Play one episode in each environment; `greedy` takes the likeliest action.

        In each environment, the first `random_steps` actions are random.
        """
        count = len(environments)
        if random_steps is None:
            random_steps = torch.zeros(count, dtype=torch.long)
        was_training = self.model.training
        self.model.eval()
        state, env_states = self.model.begin(count), np.zeros(count, np.int64)
        last_actions, last_rewards = torch.zeros(count, 0, dtype=torch.long), torch.zeros(count, 0)
        trajectory: list[tuple[Tensor, ...]] = []
        for step in range(self.spec.steps):
            current_states = torch.from_numpy(env_states)
            inputs = self.observations(last_actions, last_rewards, current_states[:, None], step)
            outputs, state = self.model.read(state, self.to_device(inputs))
            logits, value = self.logits_and_values(outputs[:, 0].cpu())
            log_probs = logits.log_softmax(-1)
            actions = (
                log_probs.argmax(-1) if greedy else torch.multinomial(log_probs.exp(), 1)[:, 0]
            )
            on_policy = random_steps <= step
            if not on_policy.all():
                random_actions = torch.randint_like(actions, self.spec.actions)
                actions = torch.where(on_policy, actions, random_actions)
            rewards, env_states = environments.act(step, env_states, actions.numpy())
            last_actions = actions[:, None]
            last_rewards = torch.from_numpy(rewards).float()[:, None]
            action_log_probs = log_probs.gather(-1, last_actions)[:, 0]
            trajectory.append(
                (actions, last_rewards[:, 0], current_states, action_log_probs, value, on_policy)
            )
        self.model.train(was_training)
        return Rollout(*(torch.stack(column, 1) for column in zip(*trajectory, strict=True)))

    def logits_and_values(
        self, outputs: Float[Tensor, "*b o"]
    ) -> tuple[Float[Tensor, "*b a"], Tensor]:
        """Return the logits of actions, and the value in units of reward."""
        return outputs[..., :-1], outputs[..., -1] * self.spec.steps

    def environments(self, records: Sequence[Record]) -> Environments:
        """Return the environments of these records, side by side."""
        if not records:
            raise InputError("records are missing: there is nothing to score")
        return Environments.from_records(self.spec, records)

    def greedy_rollouts(self, environments: Environments) -> Iterator[Rollout]:
        """Yield episodes of likeliest actions, for some environments at a time."""
        for start in range(0, len(environments), EPISODES_PER_BATCH):
            chunk = slice(start, start + EPISODES_PER_BATCH)
            chunk_environments = Environments(
                self.spec,
                environments.mean_rewards[chunk],
                environments.cumulative_transitions[chunk],
                environments.noise[chunk],
            )
            yield self.play(chunk_environments, greedy=True)

    def greedy_returns(self, environments: Environments) -> Floats:
        """Return the sum of rewards in each environment, for the likeliest actions."""
        rollouts = self.greedy_rollouts(environments)
        return np.concatenate([total_rewards(rollout).numpy() for rollout in rollouts])

    # --- inference

    def parse(self, line: str, location: str) -> Record:
        self.spec.parse_history(line, location)  # raises an error if the line is no history
        return {HISTORY: line}

    def form_values(self, record: Record) -> dict[str, FieldValue]:  # noqa: ARG002
        """Return nothing: an environment is no history."""
        return {}

    def predict(
        self, records: Sequence[Record], *, on_progress: ProgressCallback | None = None
    ) -> list[Prediction]:
        """Return the next action after each history, and an episode in each environment."""
        environment_records = [record for record in records if HISTORY not in record]
        episodes = iter(self.predict_episodes(environment_records, on_progress))
        predictions: list[Prediction] = []
        for record in records:
            if HISTORY not in record:
                predictions.append(next(episodes))
                continue
            predictions.append(self.predict_action(record[HISTORY]))
            if on_progress is not None:
                on_progress(1)
        return predictions

    def predict_episodes(
        self, records: Sequence[Record], on_progress: ProgressCallback | None = None
    ) -> list[EpisodePrediction]:
        """Return an episode of likeliest actions in each environment."""
        predictions: list[EpisodePrediction] = []
        for rollout in self.greedy_rollouts(self.environments(records)) if records else ():
            totals = total_rewards(rollout).tolist()
            policies = self.policies(rollout)
            columns = (rollout.actions, rollout.rewards, rollout.states, policies)
            rows = zip(*(column.tolist() for column in columns), totals, strict=True)
            for actions, rewards, states, policy, total in rows:
                predictions.append(
                    EpisodePrediction(
                        self.format_episode(actions, rewards, states),
                        total,
                        tuple(actions),
                        tuple(rewards),
                        tuple(states),
                        tuple(map(tuple, policy)),
                    )
                )
            if on_progress is not None:
                on_progress(len(totals))
        return predictions

    @torch.no_grad()
    def policies(self, rollout: Rollout) -> Float[Tensor, "e s a"]:
        """Return the probability of each action at each step of these episodes."""
        inputs = self.observations(rollout.actions[:, :-1], rollout.rewards[:, :-1], rollout.states)
        outputs = self.model.eval().episode(self.to_device(inputs))
        return self.logits_and_values(outputs)[0].softmax(-1)

    def format_episode(
        self, actions: Sequence[int], rewards: Sequence[float], states: Sequence[int]
    ) -> str:
        """Return `ACTION:REWARD ...`, and in an MDP the state before each action."""
        words = [f"{a + 1}:{r:g}" for a, r in zip(actions, rewards, strict=True)]
        if self.spec.states > 1:
            words = [f"{s + 1} {word}" for s, word in zip(states, words, strict=True)]
        return " ".join(words)

    @torch.no_grad()
    def predict_action(self, history: str) -> ActionPrediction:
        """Return the next action after a history; the text has the likeliest action first."""
        inputs = self.to_device(self.history_inputs(history))
        outputs = self.model.eval().episode(inputs)[0, -1]
        logits, value = self.logits_and_values(outputs)
        probabilities = logits.softmax(-1).tolist()
        ordered = sorted(enumerate(probabilities, 1), key=lambda pair: -pair[1])
        text = ", ".join(f"{action} {probability:.1%}" for action, probability in ordered)
        return ActionPrediction(
            text, int(np.argmax(probabilities)), tuple(probabilities), value.item()
        )

    def history_inputs(self, history: str) -> Float[Tensor, "1 s i"]:
        """Return the inputs of an episode that is given as text."""
        actions, rewards, states = self.spec.parse_history(history, HISTORY)
        return self.observations(
            torch.tensor([actions], dtype=torch.long),
            torch.tensor([rewards]).view(1, -1),
            torch.tensor([states]),
        )

    def metrics(self, records: Sequence[Record], predictions: Sequence[Prediction]) -> Metrics:
        """Return the mean return and its standard error, and the returns of simple policies."""
        environments, spec = self.environments(records), self.spec
        episodes = cast("Sequence[EpisodePrediction]", predictions)
        value, standard_error = mean_return([episode.total_reward for episode in episodes])
        metrics: Metrics = {
            "return": value,
            "return_signature": self.signature(),
            "error": standard_error,
            "random": mean_return(policy_returns(random_policy, environments)).value,
        }
        if spec.states == 1:
            metrics["greedy"] = mean_return(policy_returns(greedy_policy, environments)).value
            metrics["thompson"] = mean_return(policy_returns(thompson_policy, environments)).value
            if (best_return := optimal_return(spec.actions, spec.steps)) is not None:
                metrics["optimal"] = best_return
        return {**metrics, "known": mean_return(environments.optimal_returns()).value}

    def signature(self) -> str:
        """Return the conditions under which the return is measured."""
        spec = self.spec
        states = f"|states:{spec.states}|horizon:{spec.horizon}" if spec.states > 1 else ""
        conditions = f"{spec.name}{states}|actions:{spec.actions}|steps:{spec.steps}"
        return f"return|{conditions}|discount:1|act:likeliest|v:1"

    def likelihood_metrics(self, records: Sequence[Record]) -> Metrics:  # noqa: ARG002
        """Return no metrics: there are no targets."""
        return {}

    def validation_metric(self, name: str, records: Sequence[Record]) -> float:  # noqa: ARG002
        """Return the mean return of the model."""
        return mean_return(self.greedy_returns(self.environments(records))).value

    # --- inspection

    @torch.no_grad()
    def attention_weights(self, history: str) -> dict[str, Tensor]:
        """Return the weights of each step over itself and the steps before, by attention."""
        with observe(self.model.eval()) as recorded:
            self.model.episode(self.to_device(self.history_inputs(history)))
        return {name: weights[0] for name, weights in recorded.joined().items()}

    def attention_map(self, record: Record, target: str | None = None) -> AttentionMap:  # noqa: ARG002
        return view.history_map(self, view.history_of(self, record))

    def render(
        self,
        record: Record,
        surface: Surface,
        *,
        target: str | None = None,  # noqa: ARG002
        layer: int | None = None,  # noqa: ARG002
    ) -> str:
        return view.render_history(self, view.history_of(self, record), surface)


def total_rewards(rollout: Rollout) -> Float[Tensor, " e"]:
    """Return the sum of the rewards of each episode, in double precision."""
    return rollout.rewards.double().sum(1)
