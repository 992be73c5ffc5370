"""What every encoder of images obeys: each law is tried on each model of the catalogue.

A model that is added to the catalogue for `image` is tried here without further ado; `VARIANTS`
adds settings that change what is computed.
"""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from regard.attention.observe import observe
from regard.models.catalogue import build_model, model_settings
from regard.tasks.catalogue import model_kinds

SMALL = {"size": (8, 12), "channels": 2, "patch_size": 4, "dim": 8, "heads": 2, "layers": 2}
VARIANTS: list[tuple[str, dict[str, Any]]] = [
    *((kind, {}) for kind in model_kinds("image")),
    ("vit", {"stem": "convolution"}),
    ("vit", {"activation": "relu", "hidden_dim": 6, "attention_dropout": 0.2}),
]


def name(variant: tuple[str, dict[str, Any]]) -> str:
    kind, settings = variant
    return " ".join([kind, *(f"{key}={value}" for key, value in settings.items())])


every_model = pytest.mark.parametrize("variant", VARIANTS, ids=name)


def made(variant: tuple[str, dict[str, Any]], **more: Any) -> Any:
    """Weights are drawn wide, but those of norms, behind which a ReLU could be off for good."""
    kind, settings = variant
    known = {key: value for key, value in SMALL.items() if key in model_settings(kind)}
    model = build_model(kind, {**known, **settings, **more}).double().eval()
    for module in model.modules():
        if not isinstance(module, nn.LayerNorm | nn.GroupNorm):
            for weight in module.parameters(recurse=False):
                nn.init.normal_(weight, std=0.4)
    return model


def drawn(rows: int = 3, height: int = 8, width: int = 12) -> Tensor:
    return torch.rand(rows, 2, height, width, dtype=torch.float64)


def close(one: Tensor, other: Tensor) -> None:
    torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-10)


@every_model
def test_it_says_what_it_gives(variant):
    model, images = made(variant), drawn()
    found = model.encode(images)
    rows, columns = model.grid(8, 12)
    assert found.states.shape[0] == found.valid.shape[0] == 3
    assert found.states.shape[1] == found.valid.shape[1] >= rows * columns
    assert found.states.shape[2] == model.width
    assert found.pooled.shape == (3, model.pooled_width)
    assert found.states.isfinite().all()


@every_model
@pytest.mark.parametrize("training", [False, True])
def test_a_image_does_not_see_the_others(variant, training, unchecked):
    """In training, too, where a norm over the batch would look at them."""
    settings = {key: value for key, value in variant[1].items() if "dropout" not in key}
    model, images = made((variant[0], settings)).train(training), drawn()
    whole = model.encode(images).states
    for row in range(3):
        close(model.encode(images[row : row + 1]).states[0], whole[row])
    order = torch.tensor([2, 0, 1])
    close(model.encode(images[order]).states, whole[order])


@every_model
def test_all_of_a_image_is_seen(variant, unchecked):
    model, images = made(variant), drawn(1)
    plain = model.encode(images).pooled
    for row in range(0, 8, 4):
        for column in range(0, 12, 4):
            other = images.clone()
            other[:, :, row : row + 4, column : column + 4] += 0.5
            assert not torch.allclose(model.encode(other).pooled, plain, rtol=1e-9)


@every_model
def test_where_a_patch_is_matters(variant, unchecked):
    model, images = made(variant), drawn(1)
    assert not torch.allclose(model.encode(images.flip(3)).pooled, model.encode(images).pooled)


@every_model
def test_attention_can_be_seen_and_changes_nothing(variant, unchecked):
    model, images = made(variant), drawn()
    plain = model.encode(images)
    with observe(model) as seen:
        assert torch.equal(model.encode(images).states, plain.states)
    slots = plain.states.shape[1]
    for weights in seen.joined().values():
        assert weights.shape[-2:] == (slots, slots)
        close(weights.sum(-1), torch.ones_like(weights[..., 0]))


@every_model
def test_gradients_are_finite_and_reach_every_parameter(variant, unchecked):
    torch.manual_seed(3)  # a ReLU may well be off for all of an image
    model, images = made(variant), drawn().requires_grad_()
    model.encode(images).pooled.square().sum().backward()
    assert images.grad is not None
    assert images.grad.any(1).all()
    for key, weight in model.named_parameters():
        assert weight.grad is not None, key
        assert weight.grad.isfinite().all(), key
        assert weight.grad.any(), key


@every_model
def test_another_size_is_read(variant, unchecked):
    model = made(variant)
    assert model.encode(drawn(1, 16, 8)).states.isfinite().all()
    with pytest.raises(ValueError, match="cannot be cut into patches"):
        model.encode(drawn(1, 10, 8))


@every_model
def test_dropout_drops_in_training_only(variant, unchecked):
    model, images = made(variant, dropout=0.5), drawn()
    assert torch.equal(model.encode(images).states, model.encode(images).states)
    model.train()
    assert not torch.equal(model.encode(images).states, model.encode(images).states)
