"""The pointer-generator against a loop written from the equations of See et al. 2017."""

import pytest
import torch
from torch import Tensor, nn

from regard.attention.observe import observe
from regard.decoding.beam import beam_search
from regard.decoding.constraints import Constraints
from regard.decoding.scoring import score_outputs
from regard.models.pointer import MIN_PROBABILITY, UNKNOWN, Pointer, coverage_loss
from regard.text import special

SIZE = 9
# 9 and 10 are unknown words of this document; 5 and 9 are in it twice
SOURCE, TARGET = [5, 9, 4, 5, 10, 9, 2], [1, 5, 9, 3, 10]


def with_random_weights(model: Pointer, std: float = 0.5) -> Pointer:
    for weight in model.parameters():
        nn.init.normal_(weight, std=std)
    return model.double().eval()


def small_model(copy: bool = True, coverage: bool = True, std: float = 0.5) -> Pointer:
    sizes = {"dim": 3, "hidden_dim": 4, "align_dim": 5}
    return with_random_weights(Pointer(SIZE, SIZE, **sizes, copying=copy, coverage=coverage), std)


def lstm(p: dict[str, Tensor], x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    raw = p["weight_ih"] @ x + p["weight_hh"] @ h + p["bias_ih"] + p["bias_hh"]
    i, f, g, o = raw.chunk(4)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


def by_the_equations(
    model: Pointer, source: list[int], target: list[int], covered: bool = True
) -> tuple[list[dict[int, float]], list[list[float]], list[float]]:
    """Return P of each word, weights and p_gen for each step."""
    p = {name: weight.detach() for name, weight in model.named_parameters()}
    names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    forward, backward = ({n: p[f"encoder.cells.{i}.{n}"] for n in names} for i in range(2))
    cell = {n: p[f"cell.{n}"] for n in names}

    def vector(word: int) -> Tensor:
        return p["words.weight"][word if word < SIZE else UNKNOWN]

    def read(cell: dict[str, Tensor], words: list[int]) -> tuple[list[Tensor], Tensor]:
        h = c = torch.zeros(4, dtype=torch.float64)
        states = []
        for word in words:
            h, c = lstm(cell, vector(word), h, c)
            states.append(h)
        return states, c

    ahead, c_ahead = read(forward, source)
    back, c_back = read(backward, source[::-1])
    states = [torch.cat(pair) for pair in zip(ahead, back[::-1], strict=True)]
    s, c = (
        (p[f"of_last.{i}.weight"] @ torch.cat(ends) + p[f"of_last.{i}.bias"]).relu()
        for i, ends in enumerate(((ahead[-1], back[-1]), (c_ahead, c_back)))
    )
    context, coverage = torch.zeros(8, dtype=torch.float64), [0.0] * len(source)
    distributions, all_weights, gates = [], [], []
    for y in target:
        x = p["merge.weight"] @ torch.cat([vector(y), context]) + p["merge.bias"]
        s, c = lstm(cell, x, s, c)
        energy = []
        for h, covered_weight in zip(states, coverage, strict=True):
            inner = p["attention.score.of_key.weight"] @ h
            inner = inner + p["attention.score.of_query.weight"] @ s
            inner = inner + p["attention.score.of_query.bias"]
            if "of_coverage" in p and covered:
                inner = inner + p["of_coverage"] * covered_weight
            energy.append(p["attention.score.energy"] @ inner.tanh())
        weights = torch.stack(energy).softmax(0)
        context = sum(w * h for w, h in zip(weights, states, strict=True))
        combined = p["combine.weight"] @ torch.cat([s, context]) + p["combine.bias"]
        vocabulary = (p["output.weight"] @ combined + p["output.bias"]).softmax(0).tolist()
        gate = 1.0
        if "gate.weight" in p:
            parts = torch.cat([context, s, x])
            gate = float((p["gate.weight"][0] @ parts + p["gate.bias"][0]).sigmoid())
        distribution = {word: gate * probability for word, probability in enumerate(vocabulary)}
        for word, weight in zip(source, weights.tolist(), strict=True):
            if "gate.weight" in p:
                distribution[word] = distribution.get(word, 0.0) + (1 - gate) * weight
        distributions.append(distribution)
        all_weights.append(weights.tolist())
        gates.append(gate)
        coverage = [a + b for a, b in zip(coverage, weights.tolist(), strict=True)]
    return distributions, all_weights, gates


def decode(model: Pointer, covered: bool = True):
    source, target = torch.tensor([SOURCE]), torch.tensor([TARGET])
    memory = model.remember(source, torch.ones_like(source, dtype=torch.bool))
    output = model.decode_with_attention(memory, target, covered)
    extra_ids = model.start(memory).extra_ids
    return output, model.distribution(*output, source[:, None], extra_ids)[0]


@pytest.mark.parametrize("copy", [True, False])
@pytest.mark.parametrize("coverage", [True, False])
def test_it_is_its_equations(copy, coverage):
    model = small_model(copy, coverage)
    output, distribution = decode(model)
    expected_rows, expected_weights, gates = by_the_equations(model, SOURCE, TARGET)
    torch.testing.assert_close(
        output.weights[0], torch.tensor(expected_weights, dtype=torch.float64)
    )
    expected = torch.zeros(len(TARGET), SIZE + 2 * copy, dtype=torch.float64)
    for row, row_distribution in zip(expected, expected_rows, strict=True):
        for word, probability in row_distribution.items():
            row[word] = probability
    torch.testing.assert_close(distribution, expected)
    torch.testing.assert_close(distribution.sum(-1), torch.ones(len(TARGET), dtype=torch.float64))
    if copy:
        assert output.gates is not None
        torch.testing.assert_close(
            output.gates[0].sigmoid(), torch.tensor(gates, dtype=torch.float64)
        )


def test_coverage_can_be_ignored():
    model = small_model()
    plain, _ = decode(model, covered=False)
    _, expected_weights, _ = by_the_equations(model, SOURCE, TARGET, covered=False)
    torch.testing.assert_close(
        plain.weights[0], torch.tensor(expected_weights, dtype=torch.float64)
    )
    assert not torch.allclose(plain.weights, decode(model)[0].weights)
    assert Pointer(SIZE, SIZE).of_coverage.abs().sum() == 0  # at first, coverage has no effect
    plain.weights.sum().backward()
    assert model.of_coverage.grad is None


def test_copies_of_a_repeated_word_add_up():
    model = small_model()
    nn.init.constant_(model.gate.weight, 0.0)
    nn.init.constant_(model.gate.bias, -50.0)  # copy always
    output, distributions = decode(model)
    for distribution, weights in zip(distributions, output.weights[0], strict=True):
        for word in set(SOURCE):
            total = sum(
                weights[place] for place, source_word in enumerate(SOURCE) if source_word == word
            )
            assert distribution[word].item() == pytest.approx(total.item())


@pytest.mark.parametrize("copy", [True, False])
def test_likelihood_is_that_of_the_distribution(copy):
    model = small_model(copy)
    source = torch.tensor([SOURCE, [4, 5, 2, 0, 0, 0, 0]])
    inputs = torch.tensor([TARGET, [1, 4, 3, 0, 0]])
    target = torch.tensor([[5, 9, 3, 10, 2], [4, 3, 2, 0, 0]])
    if not copy:
        source, inputs, target = (ids.clamp(max=SIZE - 1) for ids in (source, inputs, target))
    valid = inputs != 0
    memory = model.remember(source, source != 0)
    output = model.decode_with_attention(memory, inputs)
    log_likelihood = model.log_likelihood(output, source, target, valid)
    extra_ids = model.start(memory).extra_ids
    distribution = model.distribution(*output, source[:, None], extra_ids)
    expected = distribution.gather(-1, target[..., None])[..., 0][valid].log()
    torch.testing.assert_close(log_likelihood, expected)


def test_a_word_that_cannot_be_copied_has_a_finite_loss():
    """The target is an unknown word that is not in the document."""
    model = small_model()
    source, target = torch.tensor([[4, 2]]), torch.tensor([[SIZE]])
    memory = model.remember(source, source != 0)
    output = model.decode_with_attention(memory, torch.tensor([[1]]))
    log_likelihood = model.log_likelihood(output, source, target, target != 0)
    log_likelihood.sum().backward()
    assert log_likelihood.item() < torch.tensor(MIN_PROBABILITY).log()
    assert all(torch.isfinite(w.grad).all() for w in model.parameters() if w.grad is not None)


def test_the_coverage_loss_by_hand():
    weights = torch.tensor([[[0.5, 0.5, 0.0], [0.2, 0.7, 0.1], [0.0, 1.0, 0.0]]]).double()
    valid = torch.tensor([[True, True, True]])
    # second: min(.2, .5) + min(.7, .5) + 0; third: min(1, 1.2)
    assert float(coverage_loss(weights, valid)) == pytest.approx(0.7 + 1.0)
    assert float(coverage_loss(weights, torch.tensor([[True, True, False]]))) == pytest.approx(0.7)
    assert float(coverage_loss(weights[:, :1], valid[:, :1])) == 0  # no earlier attention


def test_coverage_loss_is_the_loop():
    model = small_model()
    output, _ = decode(model)
    _, all_weights, _ = by_the_equations(model, SOURCE, TARGET)
    total, before = 0.0, [0.0] * len(SOURCE)
    for row in all_weights:
        total += sum(min(a, c) for a, c in zip(row, before, strict=True))
        before = [a + c for a, c in zip(row, before, strict=True)]
    valid = torch.ones(1, len(TARGET), dtype=torch.bool)
    assert coverage_loss(output.weights, valid).item() == pytest.approx(total)


@pytest.mark.parametrize("copy", [True, False])
def test_steps_equal_the_equations(copy):
    """Steps equal the equations, and other documents of the batch change nothing."""
    model = small_model(copy)
    first, second = [w if copy else min(w, 8) for w in SOURCE], [4, 11 if copy else 6, 2]
    source = torch.tensor([first, second + [0] * 4])
    memory = model.remember(source, source != 0)
    state = model.select(model.start(memory), torch.tensor([0, 0, 1]))
    expected, _, _ = by_the_equations(model, first, TARGET)
    for token, distribution in zip(TARGET, expected, strict=True):
        log_probs, state = model.step(state, torch.tensor([token, token, 4]))
        assert log_probs.shape == (3, SIZE + 3 * copy)
        for word in range(log_probs.shape[1]):
            probability = distribution.get(word, 0.0)
            assert log_probs[0, word].exp().item() == pytest.approx(probability)
            assert log_probs[1, word].exp().item() == pytest.approx(probability)
        if copy:
            assert log_probs[2, SIZE] == -torch.inf  # a word of the other document
            assert log_probs[2, SIZE + 2] > -torch.inf
        state = model.select(state, torch.tensor([1, 0, 2]))


@pytest.mark.parametrize("coverage", [True, False])
def test_beam_search_with_copying_is_forced_scoring(coverage):
    torch.manual_seed(4)  # a seed with copies, which the last line checks
    model = small_model(coverage=coverage, std=1.0)
    nn.init.constant_(model.gate.bias, -1.0)
    source = torch.tensor([SOURCE, [4, 11, 9, 6, 2, 0, 0], [5, 6, 7, 4, 8, 4, 2]])
    memory = model.remember(source, source != 0)
    hypotheses = beam_search(model, memory, 3, 4, n_best=4, constraints=Constraints(max_length=8))
    scored = score_outputs(
        model, memory, [[hypothesis.ids for hypothesis in best] for best in hypotheses]
    )
    for row, (best, rescored) in enumerate(zip(hypotheses, scored, strict=True)):
        for hypothesis, scored_hypothesis in zip(best, rescored, strict=True):
            assert hypothesis.log_prob == pytest.approx(scored_hypothesis.log_prob)
            ids = torch.tensor([[1, *hypothesis.ids]])
            alone = model.remember(source[row : row + 1], source[row : row + 1] != 0)
            output = model.decode_with_attention(alone, ids)
            target = torch.tensor([[*hypothesis.ids, 2]])
            valid = torch.ones_like(target, dtype=torch.bool)
            log_likelihood = model.log_likelihood(
                output, source[row : row + 1], target, valid
            ).sum()
            assert hypothesis.log_prob == pytest.approx(log_likelihood.item())
    assert any(
        word >= SIZE for best in hypotheses for hypothesis in best for word in hypothesis.ids
    )


def test_observe_records_the_weights():
    model = small_model()
    source, target = torch.tensor([SOURCE]), torch.tensor([TARGET])
    memory = model.remember(source, source != 0)
    with observe(model) as recorded:
        states = model.teacher_forced(memory, target)
    torch.testing.assert_close(
        states, model.decode_with_attention(memory, target).states, rtol=0, atol=0
    )
    weights = recorded.joined()["attention"]
    torch.testing.assert_close(weights, model.decode_with_attention(memory, target).weights)


def test_settings_that_do_not_fit():
    with pytest.raises(ValueError, match="one vocabulary for both sides"):
        Pointer(8, 9)
    assert UNKNOWN == special.UNKNOWN
