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

from regard.attend.tap import observe
from regard.corpora.worlds import Floats, Form, Worlds
from regard.tasks.loss import Loss

TOGETHER = 2048  # worlds that are played side by side, when none is learnt from


@dataclass(frozen=True)
class Played:
    """Lives, side by side: what was done, what it paid, and where one was before."""

    actions: Int[Tensor, "e t"]
    rewards: Float[Tensor, "e t"]
    states: Int[Tensor, "e t"]
    chances: Float[Tensor, "e t"]  # log p of what was done
    values: Float[Tensor, "e t"]  # what was expected, from there on
    own: Bool[Tensor, "e t"]  # chosen by the model, not by chance


@dataclass(frozen=True)
class Lesson:
    """What a model learns from; `missed` is what those get more who know their world."""

    actions: Int[Tensor, "e t"]
    rewards: Float[Tensor, "e t"]
    states: Int[Tensor, "e t"]
    chances: Float[Tensor, "e t"]
    advantages: Float[Tensor, "e t"]
    returns: Float[Tensor, "e t"]
    own: Bool[Tensor, "e t"]
    missed: Float[Tensor, " e"]


class Weights(NamedTuple):
    """Of the parts of a loss; `clip` is how far p may go from p_old, as a share."""

    clip: float = 0.2
    value: float = 5.0
    entropy: float = 0.01


class Choice(NamedTuple):
    """What is done next (from 0), how likely each action is, and what is expected of the rest."""

    action: int
    probabilities: list[float]
    value: float


class Act:
    """A model that acts in worlds of one form."""

    def __init__(self, model: nn.Module, form: Form):
        self.model: Any = model  # any with `episode`, `begin` and `read`
        self.form = form

    @staticmethod
    def width(form: Form) -> int:
        """Of what is seen at a step."""
        return form.actions + 1 + (form.states + 1 if form.states > 1 else 0)

    def seen(
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
        form, many = self.form, states.shape[1]
        told = torch.cat([F.one_hot(actions, form.actions).to(rewards), rewards[..., None]], -1)
        told = F.pad(told, (0, 0, many - told.shape[1], 0))
        if form.states == 1:
            return told
        step = torch.arange(start, start + many)
        done = ((step % form.horizon == 0) & (step > 0)).to(rewards)
        where = F.one_hot(states, form.states).to(rewards)
        return torch.cat([told, done.expand(len(states), many)[..., None], where], -1)

    @torch.no_grad()
    def play(
        self, worlds: Worlds, *, best: bool = False, led: Int[Tensor, " e"] | None = None
    ) -> Played:
        """A life in each world, step by step; `best`: the likeliest action, always.

        `led`: in each world, so many first steps are by chance, whatever the model would do.
        """
        led = torch.zeros(len(worlds), dtype=torch.long) if led is None else led
        trained = self.model.training
        self.model.eval()
        state, many = self.model.begin(len(worlds)), len(worlds)
        where = np.zeros(many, np.int64)
        did, paid = torch.zeros(many, 0, dtype=torch.long), torch.zeros(many, 0)
        found: list[tuple[Tensor, ...]] = []
        for step in range(self.form.steps):
            now = torch.from_numpy(where)
            given = self.seen(did, paid, now[:, None], step)
            said, state = self.model.read(state, given)
            logits, value = self.parts(said[:, 0])
            chances = logits.log_softmax(-1)
            drawn = chances.argmax(-1) if best else torch.multinomial(chances.exp(), 1)[:, 0]
            own = led <= step
            if not own.all():
                drawn = torch.where(own, drawn, torch.randint_like(drawn, self.form.actions))
            pay, where = worlds.act(step, where, drawn.numpy())
            did, paid = drawn[:, None], torch.from_numpy(pay).float()[:, None]
            chance = chances.gather(-1, did)[:, 0]
            found.append((drawn, paid[:, 0], now, chance, value, own))
        self.model.train(trained)
        return Played(*(torch.stack(one, 1) for one in zip(*found, strict=True)))

    def parts(self, said: Float[Tensor, "*b o"]) -> tuple[Float[Tensor, "*b a"], Tensor]:
        """Logits of actions, and the value; an output near 0 to 1 is one of the whole life."""
        return said[..., :-1], said[..., -1] * self.form.steps

    def lesson(
        self, worlds: Worlds, discount: float, trace: float, led: float = 0.0
    ) -> dict[str, Tensor]:
        """One round: play, and say what each action was worth.

        A share `led` of the lives begins by chance, for any number of steps: who only ever begins
        in its own way never learns to go on from another's.
        """
        begun = torch.randint(1, max(self.form.steps, 2), (len(worlds),))
        lived = self.play(worlds, led=begun * (torch.rand(len(worlds)) < led))
        advantages = estimated(lived.rewards, lived.values, discount, trace)
        returns, own = advantages + lived.values, advantages[lived.own]
        spread = own.std() if own.numel() > 1 else own.new_ones(())
        return {
            "actions": lived.actions,
            "rewards": lived.rewards,
            "states": lived.states,
            "chances": lived.chances,
            "advantages": (advantages - own.mean()) / (spread + 1e-8),
            "returns": returns,
            "own": lived.own,
            "missed": torch.from_numpy(worlds.known()).float() - lived.rewards.sum(1),
        }

    def loss(self, batch: Lesson, weights: Weights) -> Loss:
        """Counted are lives. Its value is what they missed: the rest is there for its gradient."""
        given = self.seen(batch.actions[:, :-1], batch.rewards[:, :-1], batch.states)
        logits, values = self.parts(self.model.episode(given))
        chances = logits.log_softmax(-1)
        taken = chances.gather(-1, batch.actions[..., None])[..., 0]
        # what chance did may have been all but impossible: its ratio could be infinite
        ratio = (taken - batch.chances).masked_fill(~batch.own, 0).exp()
        kept = ratio.clamp(1 - weights.clip, 1 + weights.clip)
        surrogate = torch.minimum(ratio * batch.advantages, kept * batch.advantages)
        entropy = -(chances.exp() * chances).sum(-1)
        far = ((values - batch.returns) / self.form.steps).square()  # as V is said
        total = weights.value * far - surrogate - weights.entropy * entropy
        total = (total * batch.own).mean(1).sum()
        return Loss(total - total.detach() + batch.missed.sum(), len(batch.missed))

    def returns(self, worlds: Worlds) -> Floats:
        """What each life brings, the likeliest action being taken."""
        found = list[Floats]()
        for start in range(0, len(worlds), TOGETHER):
            some = slice(start, start + TOGETHER)
            part = Worlds(self.form, worlds.means[some], worlds.paths[some], worlds.luck[some])
            found.append(self.play(part, best=True).rewards.double().sum(1).numpy())
        return np.concatenate(found)

    def history(self, text: str, place: str) -> Float[Tensor, "1 s i"]:
        """What was seen in a life that is written as text."""
        did, paid, states = self.form.read(text, place)
        actions = torch.tensor([did], dtype=torch.long)
        return self.seen(actions, torch.tensor([paid]).view(1, -1), torch.tensor([states]))

    @torch.no_grad()
    def choice(self, text: str, place: str) -> Choice:
        """What is done after this."""
        said = self.model.eval().episode(self.history(text, place))[0, -1]
        logits, value = self.parts(said)
        shares = logits.softmax(-1).tolist()
        return Choice(int(np.argmax(shares)), shares, value.item())

    @torch.no_grad()
    def looked(self, text: str, place: str = "TEXT") -> dict[str, Tensor]:
        """What each step looked at, of those before it and itself, by the attention's name."""
        with observe(self.model.eval()) as seen:
            self.model.episode(self.history(text, place))
        return {name: one[0] for name, one in seen.whole().items()}

    def named(self, text: str) -> list[str]:
        """A name for each step: what was done before it, and where one was."""
        did, paid, states = self.form.read(text, "TEXT")
        names = ["(begin)", *(f"{a + 1}:{r:g}" for a, r in zip(did, paid, strict=True))]
        if self.form.states == 1:
            return names
        return [f"{name} {state + 1}" for name, state in zip(names, states, strict=True)]


def estimated(
    rewards: Float[Tensor, "e t"], values: Float[Tensor, "e t"], discount: float, trace: float
) -> Float[Tensor, "e t"]:
    """A_t = d_t + g l A_{t+1}, from the last step back; after it nothing is expected."""
    found = torch.zeros_like(rewards)
    after, following = torch.zeros_like(rewards[:, 0]), torch.zeros_like(rewards[:, 0])
    for step in reversed(range(rewards.shape[1])):
        surprise = rewards[:, step] + discount * following - values[:, step]
        after = surprise + discount * trace * after
        found[:, step], following = after, values[:, step]
    return found
