"""Searches on another device find what they find on the CPU."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from support.simulated_device import NAME, simulated_device

from regard.decoding.beam import beam_search
from regard.decoding.constraints import Constraints
from regard.decoding.greedy import greedy_search
from regard.decoding.sampling import SamplingOptions, sample
from regard.decoding.scoring import alternatives, score_outputs
from regard.decoding.topk import fast_argmax, topk_candidates
from regard.layers import precision
from regard.models.transformer import Transformer

SIZE = 20
CONSTRAINED = Constraints(
    max_length=6, min_length=2, no_repeat_ngram=2, prefix=[[5], []], forbidden=[0, 1, 7]
)
PHRASES = Constraints(max_length=8, phrases=[[[4, 5]], [[6]]])
SEARCHES: dict[str, Callable[[Any, Any], Any]] = {
    "greedy": lambda model, memory: greedy_search(model, memory, 2, CONSTRAINED),
    "beam": lambda model, memory: beam_search(
        model, memory, 2, 3, n_best=2, alpha=0.6, constraints=CONSTRAINED
    ),
    "phrases": lambda model, memory: beam_search(model, memory, 2, 3, constraints=PHRASES),
    "top_p": lambda model, memory: sample(
        model, memory, [1, 2], SamplingOptions(0.8, top_p=0.7), copies=2, constraints=CONSTRAINED
    ),
    "top_k": lambda model, memory: sample(
        model, memory, [1, 2], SamplingOptions(top_k=5, min_p=0.1), constraints=CONSTRAINED
    ),
    "scores": lambda model, memory: score_outputs(model, memory, [[[4, 5], [6]], [[7, 8, 9]]]),
    "alternatives": lambda model, memory: alternatives(
        model, memory, [[4], [5, 6]], constraints=Constraints(max_length=5)
    ),
}


@pytest.mark.parametrize("float64", [True, False], ids=["cuda", "mps"])
@pytest.mark.parametrize("name", SEARCHES)
def test_searches(name, float64, unchecked, monkeypatch):
    torch.manual_seed(3)
    model = Transformer(source_size=SIZE, target_size=SIZE, dim=8, heads=2, layers=1).eval()
    source, valid = torch.randint(3, SIZE, (2, 4)), torch.ones(2, 4, dtype=torch.bool)
    expected = SEARCHES[name](model, model.remember(source, valid))
    if not float64:
        monkeypatch.setattr(precision, "WITHOUT_FLOAT64", (NAME,))
    with simulated_device(float64=float64) as device:
        model.to(device)
        found = SEARCHES[name](model, model.remember(source.to(device), valid.to(device)))
    assert str(rounded(found)) == str(rounded(expected))


def rounded(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [rounded(part) for part in value]
    return round(value, 3) + 0.0 if isinstance(value, float) else value


def test_rows_of_large_vocabularies(unchecked):
    """Long rows are searched in pieces."""
    log_probs, scores = torch.randn(4, 40_000), torch.zeros(2, 2, dtype=torch.float64)
    best, expected = fast_argmax(log_probs), topk_candidates(log_probs, scores, 6)
    with simulated_device() as device:
        assert fast_argmax(log_probs.to(device)).tolist() == best.tolist()
        found = topk_candidates(log_probs.to(device), scores.to(device), 6)
        assert [part.tolist() for part in found] == [part.tolist() for part in expected]
