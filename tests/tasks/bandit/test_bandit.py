"""Policies in environments: observations, advantages, the loss by hand, replayed episodes."""

import numpy as np
import pytest
import torch
from rich.console import Console
from torch import nn

from regard.data.build import build_corpus
from regard.data.synthetic.environments import BanditSpec, MdpSpec
from regard.models.lstm import Lstm
from regard.models.snail import Snail
from regard.tasks.bandit.build import BUILDER
from regard.tasks.bandit.ppo import PpoOptions, RolloutBatch, generalized_advantages
from regard.tasks.bandit.task import BanditTask
from regard.tasks.bandit.view import step_names
from regard.tasks.base import BatchOptions
from regard.tasks.load import resolve_settings
from regard.view.terminal import Surface

BANDIT, MDP = BanditSpec(3, 5), MdpSpec(4, 2, horizon=3, episodes=2)
EACH_SPEC = pytest.mark.parametrize("spec", [BANDIT, MDP], ids=["bandit", "mdp"])


def build_task(spec, model_class=Snail, std=0.4, ppo=None) -> BanditTask:
    """Return a task whose weights are drawn from N(0, std^2)."""
    sizes = {"source_size": BanditTask.input_width(spec), "target_size": spec.actions + 1}
    if model_class is Snail:
        sizes["steps"] = spec.steps
    model = model_class(**sizes, dim=6)
    for weight in model.parameters():
        nn.init.normal_(weight, std=std)
    return BanditTask(model, spec, ppo=ppo)


def sample_environments(spec, count=6):
    return spec.sample(np.random.default_rng(7), count)


def test_inputs_are_the_last_action_its_reward_and_the_state():
    inputs = build_task(BANDIT).history_inputs("2:1 3:0")
    assert inputs.tolist() == [[[0, 0, 0, 0], [0, 1, 0, 1], [0, 0, 1, 0]]]
    inputs = build_task(MDP).history_inputs("1 2:0.5 3 1:2 4 1:-1 1 2:0 2")[0]
    assert inputs.shape == (5, 2 + 1 + 1 + 4)
    assert inputs[0].tolist() == [0, 0, 0, 0, 1, 0, 0, 0]
    assert inputs[1].tolist() == [0, 1, 0.5, 0, 0, 0, 1, 0]
    assert inputs[3].tolist() == [1, 0, -1, 1, 1, 0, 0, 0]  # an episode has ended
    assert inputs[4, 3] == 0


@EACH_SPEC
@pytest.mark.parametrize("model_class", [Snail, Lstm])
def test_an_episode_played_step_by_step_equals_the_same_episode_read_at_once(
    spec, model_class, unchecked
):
    task, environments = build_task(spec, model_class), sample_environments(spec)
    rollout = task.play(environments)
    inputs = task.observations(rollout.actions[:, :-1], rollout.rewards[:, :-1], rollout.states)
    logits, values = task.logits_and_values(task.model.episode(inputs))
    log_probs = logits.log_softmax(-1).gather(-1, rollout.actions[..., None])[..., 0]
    torch.testing.assert_close(log_probs, rollout.log_probs, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(values, rollout.values, rtol=1e-4, atol=1e-4)
    # states and rewards are those of the environments
    states = np.zeros(len(environments), np.int64)
    for step in range(spec.steps):
        assert rollout.states[:, step].tolist() == states.tolist()
        rewards, states = environments.act(step, states, rollout.actions[:, step].numpy())
        np.testing.assert_allclose(rollout.rewards[:, step], rewards, rtol=1e-6)


def test_greedy_play_takes_the_likeliest_action():
    task, environments = build_task(BANDIT), sample_environments(BANDIT)
    rollout = task.play(environments, greedy=True)
    assert torch.equal(rollout.actions, task.play(environments, greedy=True).actions)
    for row in range(len(environments)):
        history = " ".join(
            f"{a + 1}:{r:g}"
            for a, r in zip(rollout.actions[row, :-1], rollout.rewards[row, :-1], strict=True)
        )
        assert task.predict_action(history).action == rollout.actions[row, -1]
    assert task.greedy_returns(environments).tolist() == rollout.rewards.sum(1).tolist()


@pytest.mark.parametrize(("discount", "trace"), [(1.0, 0.5), (0.9, 1.0), (0.8, 0.0), (0.9, 0.7)])
def test_advantages_are_the_sums_of_the_paper(discount, trace):
    rewards, values = torch.rand(2, 5).double(), torch.rand(2, 5).double()
    advantages = generalized_advantages(rewards, values, discount, trace)
    next_values = torch.cat([values[:, 1:], torch.zeros(2, 1)], 1)
    td_errors = rewards + discount * next_values - values
    for t in range(5):
        expected = sum((discount * trace) ** k * td_errors[:, t + k] for k in range(5 - t))
        torch.testing.assert_close(advantages[:, t], expected)
    if (discount, trace) == (0.9, 1.0):  # the discounted return minus its expectation
        returns = sum(0.9**k * rewards[:, k] for k in range(5))
        torch.testing.assert_close(advantages[:, 0], returns - values[:, 0])


def collect_batch(task, environments) -> RolloutBatch:
    return RolloutBatch(**task.collect_rollout(environments))


def test_loss_is_ppo_by_hand():
    ppo = PpoOptions(clip_ratio=0.1, value_weight=2.0, entropy_weight=0.4, total_steps=20)
    task = build_task(BANDIT, std=0.1, ppo=ppo)  # nearly uniform
    batch = collect_batch(task, sample_environments(BANDIT, 3))
    with torch.no_grad():
        for weight in task.model.parameters():  # the policy changes, so that ratios are clipped
            weight.add_(0.1 * torch.randn_like(weight))
    loss = task.loss(batch, 5)  # a quarter of the steps: the weight of the entropy is 0.3
    assert loss.count == 3
    assert loss.total.item() == pytest.approx(batch.regrets.sum().item())
    inputs = task.observations(batch.actions[:, :-1], batch.rewards[:, :-1], batch.states)
    outputs = task.model.episode(inputs)
    total, clipped_count = torch.zeros(()), 0
    for row in range(3):
        for t in range(5):
            p = outputs[row, t, :3].softmax(-1)
            q = p[batch.actions[row, t]] / batch.log_probs[row, t].exp()
            advantage = batch.advantages[row, t]
            clipped = min(max(q, 1 - 0.1), 1 + 0.1)
            clipped_count += bool(clipped != q)
            entropy = -(p * p.log()).sum()
            error = outputs[row, t, 3] - batch.returns[row, t] / 5
            surrogate = min(q * advantage, clipped * advantage)
            total = total + (2.0 * error**2 - surrogate - 0.3 * entropy) / 5
    assert clipped_count
    expected = torch.autograd.grad(total, list(task.model.parameters()))
    loss.total.backward()
    for weight, gradient in zip(task.model.parameters(), expected, strict=True):
        torch.testing.assert_close(weight.grad, gradient, rtol=1e-3, atol=1e-5)


def test_random_actions_are_not_learned_from():
    task = build_task(BANDIT, std=0.1, ppo=PpoOptions(exploration_rate=0.5))
    environments = sample_environments(BANDIT, 400)
    random_steps = torch.randint(0, 5, (400,))
    rollout = task.play(environments, random_steps=random_steps)
    assert torch.equal(rollout.on_policy, torch.arange(5) >= random_steps[:, None])
    is_random = ~rollout.on_policy
    frequencies = rollout.actions[is_random].bincount(minlength=3) / is_random.sum()
    torch.testing.assert_close(frequencies, torch.full((3,), 1 / 3), atol=0.08, rtol=0)
    tensors = task.collect_rollout(environments)
    assert 0.4 < tensors["on_policy"].all(1).float().mean() < 0.6
    assert tensors["on_policy"][:, -1].all()
    assert tensors["advantages"][tensors["on_policy"]].std() == pytest.approx(1, abs=1e-3)
    gradients = []
    for noise in (0.0, 1.0):  # neither advantage nor probability of a random action matters
        changes = noise * ~tensors["on_policy"]
        changed = {"advantages": tensors["advantages"] + changes * torch.randn(400, 5)}
        changed["log_probs"] = tensors["log_probs"] - 200 * changes
        task.model.zero_grad()
        task.loss(RolloutBatch(**{**tensors, **changed}), 0).total.backward()
        gradients.append([weight.grad.clone() for weight in task.model.parameters()])
    for plain, noisy in zip(*gradients, strict=True):
        torch.testing.assert_close(plain, noisy)


@EACH_SPEC
def test_advantages_are_scaled_and_regrets_are_returned(spec):
    task, environments = build_task(spec), sample_environments(spec, 64)
    batch = collect_batch(task, environments)
    assert batch.advantages.mean().abs() < 1e-5
    assert batch.advantages.std() == pytest.approx(1, abs=1e-3)
    regrets = torch.from_numpy(environments.optimal_returns()).float() - batch.rewards.sum(1)
    torch.testing.assert_close(batch.regrets, regrets)


def test_play_restores_the_training_mode():
    task = build_task(BANDIT, Lstm)
    task.model.train()
    task.play(sample_environments(BANDIT))
    assert task.model.training


def test_names_and_attention_of_steps():
    task = build_task(MDP)
    history = "1 2:0.5 3 1:2 4"
    assert step_names(task, history) == ["(begin) 1", "2:0.5 3", "1:2 4"]
    assert step_names(build_task(BANDIT), "2:1") == ["(begin)", "2:1"]
    (weights,) = task.attention_weights(history).values()
    assert weights.shape == (3, 3)
    torch.testing.assert_close(weights.sum(-1), torch.ones(3))


SETTINGS = {
    "bandit": {"arms": 3, "steps": 4, "held_out": 12},
    "mdp": {"kind": "mdp", "states": 3, "actions": 2, "horizon": 2, "episodes": 2, "held_out": 12},
}


def build_from_settings(kind: str):
    """Return a task with random weights, as the settings describe it, and its corpus."""
    settings = resolve_settings(
        {
            "task": "bandit",
            "data": SETTINGS[kind],
            "model": {"dim": 6, "blocks": ["TC(4)", "A(4, 4)"]},
            "train": {"rollout_environments": 6, "rollout_epochs": 2, "steps": 8},
        }
    )
    task = BUILDER.build_task(settings, {}, BUILDER.build_model(settings, {}))
    return task, build_corpus(settings.data)


@pytest.mark.parametrize("kind", ["bandit", "mdp"])
def test_an_environment_is_played_and_a_history_is_continued(kind):
    task, corpus = build_from_settings(kind)
    records, counts = list(corpus.read("test")), list[int]()
    episodes = task.predict(records, on_progress=counts.append)
    returns = task.greedy_returns(task.environments(records))
    assert [episode.total_reward for episode in episodes] == returns.tolist()
    assert sum(counts) == len(records)
    history = episodes[0].text.rpartition(" ")[0]  # without its last action
    line = task.parse(history, "here")
    mixed = task.predict([records[1], line, records[0]])
    assert [mixed[0], mixed[2]] == [episodes[1], episodes[0]]
    fields = mixed[1].as_dict()
    assert fields["action"] == int(episodes[0].text.split()[-1].partition(":")[0])
    assert sum(fields["probabilities"].values()) == pytest.approx(1)
    assert task.attention_map(records[0]).title == task.attention_map(line).title == history
    surface = Surface.from_console(Console(width=80, color_system=None))
    assert task.render(line, surface).startswith(f"next: {mixed[1].text}\n\nLayer ")
    scores = task.score(records)
    assert scores["return"] == pytest.approx(returns.mean())
    assert scores["return"] == task.validation_metric("return", records)
    loss = task.negative_log_likelihood(records)
    regret = float(scores["known"]) - float(scores["return"])
    assert loss.total.item() / loss.count == pytest.approx(regret)
    with pytest.raises(ValueError, match="records are missing"):
        task.score([])
    with pytest.raises(ValueError, match="here: 'x' is not"):
        task.parse("x", "here")


def test_rollouts_are_cut_into_batches():
    task, corpus = build_from_settings("bandit")
    batches = task.batches(corpus, BatchOptions(None, 4, seed=1))
    sizes = [len(next(batches).actions) for _ in range(5)]
    assert sizes == [4, 2, 4, 2, 4]  # six environments, twice, then new ones
    assert batches.epoch == 1
    batch = task.collate(list(task.examples(corpus.read("dev"))))
    assert batch.actions.shape == (12, 4)
    assert task.loss(batch, 0).total.item() == pytest.approx(batch.regrets.sum().item(), rel=1e-5)
