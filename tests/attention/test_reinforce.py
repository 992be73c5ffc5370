"""REINFORCE estimates the gradient of the expected log-likelihood (Xu et al. 2015, sec. 4.1)."""

from itertools import product

import pytest
import torch
from torch import Tensor, nn

from regard.attention.core import Attention
from regard.attention.normalizers import softmax
from regard.attention.observe import observe
from regard.attention.reinforce import ReinforceLoss, ReinforceSampler, sample_attention
from regard.attention.scores import LocationScore

F64 = torch.float64
SLOTS, STEPS = 3, 2


class Toy(nn.Module):
    """Energies are parameters; the log-likelihood is a fixed table of which slots were read."""

    def __init__(self):
        super().__init__()
        self.energy = nn.Parameter(torch.tensor([[0.5, -0.3, 0.1], [0.0, 0.8, -0.4]], dtype=F64))
        self.hard = ReinforceSampler()
        self.table = torch.randn(SLOTS, SLOTS, dtype=F64) - 1

    def forward(self, rows: int) -> Tensor:
        """Run two steps in two calls, as in a decoder."""
        first = self.hard(self.energy[0].expand(rows, 1, -1)).squeeze(1)
        second = self.hard(self.energy[1].expand(rows, 1, -1)).squeeze(1)
        return torch.einsum("bi,ij,bj->b", first, self.table, second)


def exact_gradient(toy: Toy) -> Tensor:
    """d/de of sum_s p(s) log p(y|s), over all 9 sequences of slots."""
    p = softmax(toy.energy[None])[0]
    pairs = product(range(SLOTS), repeat=2)
    value = torch.stack([p[0, i] * p[1, j] * toy.table[i, j] for i, j in pairs]).sum()
    return torch.autograd.grad(value, toy.energy)[0]


def gradient_estimates(
    toy: Toy, rows: int, repeats: int, baseline: float, entropy: float = 0.0
) -> Tensor:
    reinforce = ReinforceLoss(entropy=entropy).to(F64).eval()
    reinforce.baseline.fill_(baseline)
    grads = []
    for _ in range(repeats):
        with sample_attention(toy, expectation_rate=0.0) as episode:
            log_likelihood = toy(rows)
        loss = reinforce(log_likelihood, episode).mean()
        grads.append(-torch.autograd.grad(loss, toy.energy)[0])
    return torch.stack(grads)


def test_the_estimate_is_unbiased():
    toy = Toy()
    grads = gradient_estimates(toy, rows=1000, repeats=100, baseline=-1.0)
    error = grads.std(0) / 100**0.5
    assert ((grads.mean(0) - exact_gradient(toy)).abs() < 5 * error).all()


def test_the_baseline_reduces_variance():
    toy = Toy()
    mean = toy.table.mean().item()
    without = gradient_estimates(toy, 1, 120, baseline=mean - 5).var(0).sum()
    with_it = gradient_estimates(toy, 1, 120, baseline=mean).var(0).sum()
    assert with_it < without / 3


def test_entropy_is_rewarded():
    toy = Toy()
    toy.table.zero_()
    grads = gradient_estimates(toy, 4, 1, baseline=0.0, entropy=0.7)[0]
    p = softmax(toy.energy[None])[0]
    entropy = -(p * p.log()).sum()
    torch.testing.assert_close(grads, 0.7 * torch.autograd.grad(entropy, toy.energy)[0])


def test_the_moving_average():
    """b_k = 0.9 b_(k-1) + 0.1 log p(y|s), starting at 0, in training only."""
    toy, reinforce = Toy(), ReinforceLoss().to(F64)
    for reward, want in ((-10.0, -1.0), (-10.0, -1.9), (0.0, -1.71)):
        with sample_attention(toy) as episode:
            toy(2)
        reinforce(torch.full((2,), reward, dtype=F64), episode)
        assert reinforce.baseline.item() == pytest.approx(want)
    assert "baseline" in reinforce.state_dict()


def test_half_of_the_sequences_read_the_expectation_throughout():
    toy, rows = Toy(), 2000
    expected = softmax(toy.energy[None])[0]
    with sample_attention(toy) as episode:
        weights = [toy.hard(toy.energy[t].expand(rows, 1, -1)).squeeze(1) for t in range(STEPS)]
    soft = [(w - expected[t]).abs().amax(-1) < 1e-12 for t, w in enumerate(weights)]
    hard = [((w == 0) | (w == 1)).all(-1) for w in weights]
    assert torch.equal(soft[0], soft[1])  # one draw for a whole sequence
    assert torch.equal(hard[0], ~soft[0])
    assert soft[0].double().mean().item() == pytest.approx(0.5, abs=0.05)
    log_prob = episode.total(episode.log_prob, None)
    assert (log_prob[soft[0]] == 0).all()
    picked = [expected[t][w.argmax(-1)].log() for t, w in enumerate(weights)]
    torch.testing.assert_close(log_prob[hard[0]], (picked[0] + picked[1])[hard[0]])


def test_padded_steps_do_not_count():
    toy = Toy()
    with sample_attention(toy, expectation_rate=0.0) as episode:
        toy(2)
    valid = torch.tensor([[True, True], [True, False]])
    steps = torch.cat(episode.log_prob[toy.hard], -1)
    want = torch.stack([steps[0].sum(), steps[1, 0]])
    torch.testing.assert_close(episode.total(episode.log_prob, valid), want)


def test_the_best_slot_at_inference():
    toy = Toy().eval()
    assert toy.hard(toy.energy[None])[0].argmax(-1).tolist() == [0, 1]


def test_recorded_weights_are_those_used():
    attention = Attention(LocationScore(4, 5), ReinforceSampler())
    memory = attention.remember(torch.randn(3, 5, 4))
    with sample_attention(attention, expectation_rate=0.0), observe(attention) as recorded:
        context = attention(torch.randn(3, 2, 4), memory)
    torch.testing.assert_close(context, recorded["attention"][0] @ memory.values)


def test_training_finds_the_rewarded_slot():
    """One of six slots gives a reward; training finds it without a gradient through the sample."""
    attention, estimator = (
        Attention(LocationScore(2, 6), ReinforceSampler()),
        ReinforceLoss(entropy=0.001),
    )
    optimizer = torch.optim.Adam(attention.parameters(), 0.05)
    values = torch.zeros(32, 6, 1)
    values[:, 4] = 1.0
    memory = attention.remember(torch.zeros(32, 6, 2), values=values)
    for _ in range(200):
        with sample_attention(attention, expectation_rate=0.0) as episode:
            reward = attention(torch.ones(32, 1, 2), memory).flatten()
        loss = estimator(reward, episode).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    weights = softmax(attention.score(torch.ones(1, 1, 2), memory.keys[:1]))
    assert weights[0, 0, 4] > 0.9


@pytest.mark.usefixtures("unchecked")
class TestBadInput:
    def test_training_outside_an_episode_is_refused(self):
        with pytest.raises(RuntimeError, match="inside `with sample_attention"):
            Toy()(1)

    def test_arguments(self):
        with (
            pytest.raises(ValueError, match="expectation_rate must be in"),
            sample_attention(Toy(), expectation_rate=2.0),
        ):
            pass
        with (
            pytest.raises(ValueError, match="model Linear has no ReinforceSampler"),
            sample_attention(nn.Linear(1, 1)),
        ):
            pass
        with pytest.raises(ValueError, match="decay must be in"):
            ReinforceLoss(decay=1.0)
        with (
            pytest.raises(ValueError, match="the episode has no samples"),
            sample_attention(Toy()) as episode,
        ):
            ReinforceLoss()(torch.zeros(2), episode)
        toy = Toy()
        with (
            pytest.raises(ValueError, match="batch has 3 sequences, but the episode began with 2"),
            sample_attention(toy),
        ):
            toy(2), toy(3)
