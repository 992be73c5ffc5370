"""Attentions by name: each entry of the catalogue, and errors for wrong names and widths."""

import pytest
import torch

from regard.attention.build import build_attention, load_component
from regard.attention.catalogue import NORMALIZERS, SCORES
from regard.attention.normalizers import softmax
from regard.attention.scores import Additive, General, ScaledDot
from regard.attention.windows import PredictiveWindow


@pytest.mark.parametrize("normalize", NORMALIZERS)
@pytest.mark.parametrize("score", SCORES)
def test_each_name_builds_its_catalogue_entry(score, normalize):
    query_dim = 5 if score == "cosine" else 4
    options = {"normalize": normalize, "slots": 9, "dropout": 0.1}
    attention = build_attention(score, query_dim, 4, **options).eval()
    assert type(attention.score) is load_component(SCORES[score])
    component, normalizer = load_component(NORMALIZERS[normalize]), attention.normalize
    assert normalizer is component or type(normalizer) is component
    context = attention(torch.randn(2, 3, query_dim), attention.remember(torch.randn(2, 6, 4)))
    assert context.shape == (2, 3, 4)
    assert attention.dropout == 0.1


@pytest.mark.parametrize("score", [name for name in SCORES if name != "cosine"])
def test_scores_have_parameters_for_each_head(score):
    attention = build_attention(score, 4, 4, slots=9, heads=3)
    for weight in attention.parameters():
        assert weight.shape[0] == 3
    memory = attention.remember(torch.randn(2, 3, 6, 4))
    assert attention(torch.randn(2, 3, 5, 4), memory).shape == (2, 3, 5, 4)


def test_widths_and_windows_are_passed_on():
    attention = build_attention("additive", 4, 6, hidden_dim=5, window="local_p", radius=3)
    assert isinstance(attention.score, Additive)
    assert attention.score.energy.shape == (5,)
    assert isinstance(attention.window, PredictiveWindow)
    assert (attention.window.radius, attention.window.sigma) == (3, 1.5)
    assert build_attention("additive", 4, 6).score.energy.shape == (4,)
    plain = build_attention("scaled_dot", 4, 4)
    assert isinstance(plain.score, ScaledDot)
    assert plain.normalize is softmax
    assert plain.window is None
    assert isinstance(build_attention("general", 4, 6).score, General)


@pytest.mark.parametrize(
    ("score", "options", "message"),
    [
        ("adittive", {}, "score: unknown name 'adittive'; did you mean 'additive'?"),
        ("concat", {}, "score: unknown name 'concat'; did you mean 'additive'?"),
        ("zzz", {}, "score: unknown name 'zzz'; choose from dot, scaled_dot, general"),
        (
            "general",
            {"normalize": "sofmax"},
            "normalize: unknown name 'sofmax'; did you mean 'soft",
        ),
        ("dot", {}, "score 'dot' needs a query as wide as the states of the memory, but their"),
        ("scaled_dot", {}, "widths are 4 and 6; 'general' and 'additive' take any widths"),
        ("cosine", {}, "one wider than the states of the memory, but their widths are 4 and 6"),
        ("location", {}, "slots is missing"),
        ("general", {"window": "local_m"}, "window must be 'local_p' or None, not 'local_m'"),
        ("general", {"window": "local_p", "radius": 0}, "radius must be at least 1"),
    ],
)
def test_wrong_names_and_widths_are_explained(score, options, message):
    with pytest.raises(ValueError) as error:
        build_attention(score, 4, 6, **options)
    assert message in str(error.value)
