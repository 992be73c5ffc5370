"""Small trainings on images whose truth is known."""

import struct

import numpy as np
import pytest
import torch

from regard.layers.images import resize_position_table
from regard.run import Run
from regard.tasks.load import resolve_settings
from regard.training.trainer import Trainer

SMALL = {"patch_size": 4, "dim": 32, "heads": 2, "layers": 2}


def trained(folder, settings):
    list(Trainer(resolve_settings({"task": "image", **settings}), folder, lambda _: None))
    return Run.load(folder)


def quadrants(folder, name, count, seed):
    """Noise with one bright patch of 16; the label is the quadrant that it lies in."""
    draw = np.random.default_rng(seed)
    pixels = draw.integers(0, 100, (count, 16, 16), dtype=np.uint8)
    places = draw.integers(0, 4, (count, 2))
    for image, (row, column) in zip(pixels, places, strict=True):
        image[4 * row : 4 * row + 4, 4 * column : 4 * column + 4] += 120
    labels = (2 * (places[:, 0] // 2) + places[:, 1] // 2).astype(np.uint8)
    files = []
    for what, array in (("images", pixels), ("labels", labels)):
        files.append(str(folder / f"{name}-{what}"))
        head = bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
        (folder / f"{name}-{what}").write_bytes(head + array.tobytes())
    return files, places


def test_where_the_bright_patch_is(tmp_path):
    """It can be told by positions only, and the class token comes to look at that patch."""
    files = {
        name: quadrants(tmp_path, name, 400, seed) for seed, name in enumerate(("train", "dev"))
    }
    data = {"kind": "images", **{name: found[0] for name, found in files.items()}}
    run = trained(
        tmp_path / "run",
        {
            "data": {**data, "held_out": 0.0},
            "image": {"size": [16, 16], "channels": 1},
            "model": SMALL,
            "train": {"steps": 150, "examples_per_batch": 32, "learning_rate": 0.003},
        },
    )
    records = list(run.corpus().read("dev"))
    found = run.score(records)
    assert found["accuracy"] >= 95
    assert found["accuracy_signature"] == "accuracy|classes:4|top:1|crops:1|size:16x16|fit:crop|v:1"
    on = 0.0
    for record, (row, column) in zip(records[:50], files["dev"][1], strict=False):
        seen = torch.stack([*run.task.patch_attention_weights(record["image"]).values()]).amax(
            (0, 1)
        )
        on += seen[row, column].item() / 50
    assert on > 3 / 17  # three times an even look, in the head that looks there most


@pytest.fixture(scope="module")
def shapes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shapes") / "run"
    data = {"kind": "shapes", "size": 1500, "held_out": 100, "shapes": ["circle", "cross"]}
    train = {"steps": 150, "examples_per_batch": 32, "learning_rate": 0.003, "validate_every": 50}
    more = {"flip": True, "crop_padding": 4, "metric": "accuracy"}
    model = {**SMALL, "stem": "convolution"}
    return folder, trained(folder, {"data": data, "model": model, "train": {**train, **more}})


def test_circles_and_crosses(shapes):
    run = shapes[1]
    assert run.score("test")["accuracy"] >= 75


def test_a_start_from_another_run(shapes, tmp_path):
    """Its encoder, frozen, at another size: positions are interpolated, the rest is as there."""
    folder, base = shapes
    data = {"kind": "shapes", "size": 64, "held_out": 20, "side": 48}
    settings = {
        "data": {**data, "shapes": ["square", "ring", "cross"]},
        "image": {"size": [48, 48]},
        "start": {"run": str(folder), "freeze": True},
        "train": {"steps": 2, "examples_per_batch": 16},
    }
    run = trained(tmp_path / "next", settings)
    assert run.settings.model == base.settings.model
    assert run.settings.image.size == (48, 48)
    assert run.task.labels.names == ["cross", "ring", "square"]
    ours, theirs = run.task.model.encoder.state_dict(), base.task.model.encoder.state_dict()
    for name, weight in theirs.items():
        if name != "position.weight":
            assert torch.equal(ours[name], weight), name
    wanted = resize_position_table(theirs["position.weight"], (8, 8), (12, 12))
    torch.testing.assert_close(ours["position.weight"], wanted)
    with pytest.raises(ValueError, match=r"image\.channels = 1, but .* of 3; leave it out"):
        trained(tmp_path / "grey", {**settings, "image": {"channels": 1}})
    with pytest.raises(ValueError, match=r"image\.size = \[30, 30\] cannot be cut into patches"):
        trained(tmp_path / "odd", {**settings, "image": {"size": [30, 30]}})
    with pytest.raises(ValueError, match="is not a run"):
        trained(tmp_path / "none", {**settings, "start": {"run": str(tmp_path / "gone")}})
