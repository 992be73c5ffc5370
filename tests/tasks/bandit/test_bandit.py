"""Acting: what is seen, what an action was worth, the loss by hand, and lives that are replayed."""

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
FORMS = pytest.mark.parametrize("form", [BANDIT, MDP], ids=["bandit", "mdp"])


def actor(form, kind=Snail, std=0.4, ppo=None) -> BanditTask:
    sizes = {"source_size": BanditTask.input_width(form), "target_size": form.actions + 1}
    if kind is Snail:
        sizes["steps"] = form.steps
    model = kind(**sizes, dim=6)
    for weight in model.parameters():
        nn.init.normal_(weight, std=std)
    return BanditTask(model, form, ppo=ppo)


def some(form, many=6):
    return form.sample(np.random.default_rng(7), many)


def test_what_is_seen():
    seen = actor(BANDIT).history_inputs("2:1 3:0")
    assert seen.tolist() == [[[0, 0, 0, 0], [0, 1, 0, 1], [0, 0, 1, 0]]]
    seen = actor(MDP).history_inputs("1 2:0.5 3 1:2 4 1:-1 1 2:0 2")[0]
    assert seen.shape == (5, 2 + 1 + 1 + 4)
    assert seen[0].tolist() == [0, 0, 0, 0, 1, 0, 0, 0]
    assert seen[1].tolist() == [0, 1, 0.5, 0, 0, 0, 1, 0]
    assert seen[3].tolist() == [1, 0, -1, 1, 1, 0, 0, 0]  # an episode has ended
    assert seen[4, 3] == 0


@FORMS
@pytest.mark.parametrize("kind", [Snail, Lstm])
def test_a_life_step_by_step_is_the_same_read_at_once(form, kind, unchecked):
    """What was said to be likely while playing is what the whole episode says of it."""
    task, worlds = actor(form, kind), some(form)
    lived = task.play(worlds)
    given = task.observations(lived.actions[:, :-1], lived.rewards[:, :-1], lived.states)
    logits, values = task.logits_and_values(task.model.episode(given))
    chances = logits.log_softmax(-1).gather(-1, lived.actions[..., None])[..., 0]
    torch.testing.assert_close(chances, lived.log_probs, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(values, lived.values, rtol=1e-4, atol=1e-4)
    # and the world has answered as it does
    states = np.zeros(len(worlds), np.int64)
    for step in range(form.steps):
        assert lived.states[:, step].tolist() == states.tolist()
        paid, states = worlds.act(step, states, lived.actions[:, step].numpy())
        np.testing.assert_allclose(lived.rewards[:, step], paid, rtol=1e-6)


def test_the_likeliest_is_taken_by_who_plays_to_win():
    task, worlds = actor(BANDIT), some(BANDIT)
    one, other = task.play(worlds, greedy=True), task.play(worlds, greedy=True)
    assert torch.equal(one.actions, other.actions)
    for row in range(len(worlds)):
        text = " ".join(
            f"{a + 1}:{r:g}"
            for a, r in zip(one.actions[row, :-1], one.rewards[row, :-1], strict=True)
        )
        assert task.predict_action(text).action == one.actions[row, -1]
    assert task.greedy_returns(worlds).tolist() == one.rewards.sum(1).tolist()


@pytest.mark.parametrize(("discount", "trace"), [(1.0, 0.5), (0.9, 1.0), (0.8, 0.0), (0.9, 0.7)])
def test_advantages_are_the_sums_of_the_paper(discount, trace):
    rewards, values = torch.rand(2, 5).double(), torch.rand(2, 5).double()
    found = generalized_advantages(rewards, values, discount, trace)
    following = torch.cat([values[:, 1:], torch.zeros(2, 1)], 1)
    surprises = rewards + discount * following - values
    for t in range(5):
        wanted = sum((discount * trace) ** k * surprises[:, t + k] for k in range(5 - t))
        torch.testing.assert_close(found[:, t], wanted)
    if (discount, trace) == (0.9, 1.0):  # what was really paid, less what was expected
        paid = sum(0.9**k * rewards[:, k] for k in range(5))
        torch.testing.assert_close(found[:, 0], paid - values[:, 0])


def lesson_of(task, worlds) -> RolloutBatch:
    return RolloutBatch(**task.collect_rollout(worlds))


def test_the_loss_is_ppo_by_hand():
    ppo = PpoOptions(clip_ratio=0.1, value_weight=2.0, entropy_weight=0.4, total_steps=20)
    task = actor(BANDIT, std=0.1, ppo=ppo)  # undecided
    batch = lesson_of(task, some(BANDIT, 3))
    with torch.no_grad():
        for weight in task.model.parameters():  # the policy has moved on: ratios are cut
            weight.add_(0.1 * torch.randn_like(weight))
    loss = task.loss(batch, 5)  # a quarter of the steps: the weight of the entropy is 0.3
    missed = batch.regrets.sum()
    assert loss.count == 3
    assert loss.total.item() == pytest.approx(missed.item())
    given = task.observations(batch.actions[:, :-1], batch.rewards[:, :-1], batch.states)
    said = task.model.episode(given)
    total, cut = torch.zeros(()), 0
    for row in range(3):
        for t in range(5):
            p = said[row, t, :3].softmax(-1)
            q = p[batch.actions[row, t]] / batch.log_probs[row, t].exp()
            gain = batch.advantages[row, t]
            held = min(max(q, 1 - 0.1), 1 + 0.1)
            cut += bool(held != q)
            entropy = -(p * p.log()).sum()
            off = said[row, t, 3] - batch.returns[row, t] / 5
            total = total + (2.0 * off**2 - min(q * gain, held * gain) - 0.3 * entropy) / 5
    assert cut
    wanted = torch.autograd.grad(total, list(task.model.parameters()))
    loss.total.backward()
    for weight, gradient in zip(task.model.parameters(), wanted, strict=True):
        torch.testing.assert_close(weight.grad, gradient, rtol=1e-3, atol=1e-5)


def test_who_is_led_learns_only_from_its_own_steps():
    task = actor(BANDIT, std=0.1, ppo=PpoOptions(exploration_rate=0.5))
    worlds = some(BANDIT, 400)
    begun = torch.randint(0, 5, (400,))
    lived = task.play(worlds, random_steps=begun)
    assert torch.equal(lived.on_policy, torch.arange(5) >= begun[:, None])
    by_chance = lived.actions[~lived.on_policy].bincount(minlength=3) / (~lived.on_policy).sum()
    torch.testing.assert_close(by_chance, torch.full((3,), 1 / 3), atol=0.08, rtol=0)
    parts = task.collect_rollout(worlds)
    assert 0.4 < parts["on_policy"].all(1).float().mean() < 0.6
    assert parts["on_policy"][:, -1].all()
    assert parts["advantages"][parts["on_policy"]].std() == pytest.approx(1, abs=1e-3)
    gradients = []
    for noise in (0.0, 1.0):  # of what was not its own, nothing matters, however unlikely it was
        strange = noise * ~parts["on_policy"]
        other = {"advantages": parts["advantages"] + strange * torch.randn(400, 5)}
        other["log_probs"] = parts["log_probs"] - 200 * strange
        task.model.zero_grad()
        task.loss(RolloutBatch(**{**parts, **other}), 0).total.backward()
        gradients.append([weight.grad.clone() for weight in task.model.parameters()])
    for one, same in zip(*gradients, strict=True):
        torch.testing.assert_close(one, same)


@FORMS
def test_advantages_are_scaled_and_what_is_missed_is_told(form):
    task, worlds = actor(form), some(form, 64)
    batch = lesson_of(task, worlds)
    assert batch.advantages.mean().abs() < 1e-5
    assert batch.advantages.std() == pytest.approx(1, abs=1e-3)
    missed = torch.from_numpy(worlds.optimal_returns()).float() - batch.rewards.sum(1)
    torch.testing.assert_close(batch.regrets, missed)


def test_a_model_goes_back_to_training_after_it_has_played():
    task = actor(BANDIT, Lstm)
    task.model.train()
    task.play(some(BANDIT))
    assert task.model.training


def test_steps_have_names_and_looks():
    task = actor(MDP)
    text = "1 2:0.5 3 1:2 4"
    assert step_names(task, text) == ["(begin) 1", "2:0.5 3", "1:2 4"]
    assert step_names(actor(BANDIT), "2:1") == ["(begin)", "2:1"]
    (weights,) = task.attention_weights(text).values()
    assert weights.shape == (3, 3)
    torch.testing.assert_close(weights.sum(-1), torch.ones(3))


SETTINGS = {
    "bandit": {"arms": 3, "steps": 4, "held_out": 12},
    "mdp": {"kind": "mdp", "states": 3, "actions": 2, "horizon": 2, "episodes": 2, "held_out": 12},
}


def built(kind: str):
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
    task, corpus = built(kind)
    records, done = list(corpus.read("test")), list[int]()
    episodes = task.predict(records, on_progress=done.append)
    returns = task.greedy_returns(task.environments(records))
    assert [episode.total_reward for episode in episodes] == returns.tolist()
    assert sum(done) == len(records)
    history = episodes[0].text.rpartition(" ")[0]  # without its last action
    line = task.parse(history, "here")
    mixed = task.predict([records[1], line, records[0]])
    assert [mixed[0], mixed[2]] == [episodes[1], episodes[0]]
    facts = mixed[1].as_dict()
    assert facts["action"] == int(episodes[0].text.split()[-1].partition(":")[0])
    assert sum(facts["probabilities"].values()) == pytest.approx(1)
    assert task.attention_map(records[0]).title == task.attention_map(line).title == history
    surface = Surface.from_console(Console(width=80, color_system=None))
    assert task.render(line, surface).startswith(f"next: {mixed[1].text}\n\nlayers.")
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
    task, corpus = built("bandit")
    batches = task.batches(corpus, BatchOptions(None, 4, seed=1))
    sizes = [len(next(batches).actions) for _ in range(5)]
    assert sizes == [4, 2, 4, 2, 4]  # six environments, twice, then new ones
    assert batches.epoch == 1
    batch = task.collate(list(task.examples(corpus.read("dev"))))
    assert batch.actions.shape == (12, 4)
    assert task.loss(batch, 0).total.item() == pytest.approx(batch.regrets.sum().item(), rel=1e-5)
