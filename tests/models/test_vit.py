"""ViT against its equations in float64, its published sizes, and other image sizes."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from regard.attention.observe import observe
from regard.layers.images import resize_position_table
from regard.models.vit import SIZES, Vit

DIM, HEADS, LAYERS, PATCH = 8, 2, 2, 3
IMAGES = torch.rand(2, 2, 6, 9, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def small_model(size: Any = (6, 9), **settings: Any) -> Any:
    small = {"patch_size": PATCH, "dim": DIM, "heads": HEADS, "layers": LAYERS}
    model = Vit(size, 2, **{**small, **settings})
    for weight in model.parameters():
        nn.init.normal_(weight, std=0.5)
    return model.double().eval()


def normed(w: dict[str, Tensor], name: str, x: Tensor) -> Tensor:
    centered = x - x.mean(-1, keepdim=True)
    scaled = centered / (centered.square().mean(-1, keepdim=True) + 1e-6).sqrt()
    return scaled * w[f"{name}.weight"] + w[f"{name}.bias"]


def affine(w: dict[str, Tensor], name: str, x: Tensor) -> Tensor:
    return x @ w[f"{name}.weight"].T + w[f"{name}.bias"]


def self_attention(w: dict[str, Tensor], name: str, x: Tensor) -> Tensor:
    q, k, v = (affine(w, f"{name}.to_{what}", x) for what in ("query", "key", "value"))
    wide, read = DIM // HEADS, torch.zeros_like(x)
    for head in range(HEADS):
        mine = slice(head * wide, (head + 1) * wide)
        for t in range(len(x)):
            read[t, mine] = (k[:, mine] @ q[t, mine] / math.sqrt(wide)).softmax(0) @ v[:, mine]
    return affine(w, f"{name}.out", read)


def states_by_equation(w: dict[str, Tensor], image: Tensor) -> Tensor:
    """Compute eq. 1 to 4 for one image, patch by patch in reading order."""
    rows = [w["first"]]
    for top in range(0, image.shape[1], PATCH):
        for left in range(0, image.shape[2], PATCH):
            cut = image[:, top : top + PATCH, left : left + PATCH].flatten()
            rows.append(w["stem.weight"].flatten(1) @ cut + w["stem.bias"])
    x = torch.stack(rows) + w["position.weight"]
    for i in range(LAYERS):
        name = f"encoder.layers.{i}"
        x = x + self_attention(w, f"{name}.self_attention", normed(w, f"{name}.self_norm", x))
        inner = affine(w, f"{name}.feed.widen", normed(w, f"{name}.feed_norm", x))
        inner = inner * 0.5 * (1 + torch.erf(inner / math.sqrt(2)))
        x = x + affine(w, f"{name}.feed.narrow", inner)
    return normed(w, "encoder.norm", x)


def close(actual: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(actual, expected, rtol=1e-9, atol=1e-10)


@torch.no_grad()
def test_it_is_its_equations():
    model = small_model()
    encoded = model.encode(IMAGES)
    for row, image in enumerate(IMAGES):
        close(encoded.states[row], states_by_equation(model.state_dict(), image))
    assert torch.equal(encoded.pooled, encoded.states[:, 0])
    assert encoded.valid.all()


@pytest.mark.parametrize(
    ("size", "patch", "count"),
    [("base", 16, 86_567_656), ("large", 16, 304_326_632), ("huge", 14, 632_045_800)],
)
def test_sizes_are_the_published_ones(size, patch, count):
    with torch.device("meta"):
        model = Vit(224, patch_size=patch, **SIZES[size])
        head = nn.Linear(model.width, 1000)
    assert sum(w.numel() for part in (model, head) for w in part.parameters()) == count


def test_observe_records_every_attention():
    model = small_model()
    with observe(model) as recorded:
        model.encode(IMAGES)
    assert [weights.shape for weights in recorded.joined().values()] == [(2, HEADS, 7, 7)] * LAYERS


def kernel(x: float, a: float = -0.75) -> float:
    """Keys 1981, eq. 4: the weight of a value at a distance."""
    x = abs(x)
    if x <= 1:
        return (a + 2) * x**3 - (a + 3) * x**2 + 1
    return a * (x**3 - 5 * x**2 + 8 * x - 4) if x < 2 else 0.0


def resample(values: Tensor, count: int) -> Tensor:
    """Resample the first axis; pixels are areas, and values at the border are repeated."""
    samples = []
    for n in range(count):
        at = (n + 0.5) * len(values) / count - 0.5
        near = range(math.floor(at) - 1, math.floor(at) + 3)
        ends = [values[min(max(i, 0), len(values) - 1)] for i in near]
        samples.append(sum(kernel(at - i) * value for i, value in zip(near, ends, strict=True)))
    return torch.stack(samples)


def test_positions_of_another_grid():
    table = torch.randn(1 + 4 * 5, 3, dtype=torch.float64)
    assert resize_position_table(table, (4, 5), (4, 5)) is table
    resized = resize_position_table(table, (4, 5), (7, 3))
    assert torch.equal(resized[0], table[0])  # the row of the class token
    rows_resized = resample(table[1:].unflatten(0, (4, 5)), 7)
    expected = resample(rows_resized.transpose(0, 1), 3).transpose(0, 1)
    close(resized[1:].unflatten(0, (7, 3)), expected)
    with pytest.raises(ValueError, match="table has 21 rows, too few for 5 x 5 patches"):
        resize_position_table(table, (5, 5), (8, 8))


def test_invalid_arguments_are_rejected(unchecked):
    with pytest.raises(ValueError, match="8 x 9 pixels cannot be cut into patches of 3 x 3"):
        small_model((8, 9))
    with pytest.raises(ValueError, match="7 x 9 pixels cannot be cut"):
        small_model().encode(torch.zeros(1, 2, 7, 9, dtype=torch.float64))
    with pytest.raises(ValueError, match=r"must have shape \[batch, 2, height, width\]"):
        small_model().encode(torch.zeros(1, 3, 6, 9, dtype=torch.float64))
    with pytest.raises(ValueError, match=r"floating point, not torch\.uint8"):
        small_model().encode(torch.zeros(1, 2, 6, 9, dtype=torch.uint8))
    with pytest.raises(
        ValueError, match="patch_size must be 2, 4, 8, … for a convolutional stem, not 3"
    ):
        small_model(stem="convolution")
    with pytest.raises(ValueError, match="stem must be 'patch' or 'convolution', not 'resnet'"):
        small_model(stem="resnet")
    with pytest.raises(ValueError, match="height must be positive"):
        small_model((0, 9))
