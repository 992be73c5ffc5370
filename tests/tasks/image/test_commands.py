"""Images on the command line: from init to look, and one line for what fails."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import regard as package
from regard.cli.check import check
from regard.cli.convert import export, import_
from regard.cli.init import init
from regard.cli.look import look
from regard.cli.predict import predict
from regard.cli.score import score
from regard.cli.train import train
from regard.data.synthetic.shapes import Shapes
from regard.errors import InputError
from regard.run import Run
from regard.tasks.building import batch_options

CONFIG = """
task = "image"
data = { kind = "images", train = "pets", dev = "pets", test = "pets" }
image = { size = [16, 24] }
model = { patch_size = 8, dim = 8, heads = 2, layers = 3 }
train = { steps = 3, examples_per_batch = 8, validate_every = 2, crop_padding = 2, flip = true }
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder of images of odd sizes, and a run on them."""
    folder = tmp_path_factory.mktemp("pets")
    for record, number in zip(Shapes(30, side=20).read("train"), range(30), strict=True):
        place = folder / "pets" / record["label"]
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray(record["image"]).resize((20 + number, 20)).save(place / f"{number}.png")
    (folder / "pets.toml").write_text(CONFIG)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        train(Path("pets.toml"))
    return folder


@pytest.fixture(autouse=True)
def _there(folder, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.delenv("REGARD_DEBUG", raising=False)


def one_of() -> str:
    return str(next(Path("pets").rglob("*.png")))


def test_init_and_check(capsys):
    init("image")
    text = capsys.readouterr().out
    assert 'kind = "shapes"' in text
    assert "[image]" in text
    check(Path("pets.toml"))
    told = capsys.readouterr().out
    assert re.search(r"^images +30 +30 +30$", told, re.MULTILINE)
    assert re.search(r"^shortest side, pixels +20 +20 +20$", told, re.MULTILINE)
    assert re.search(r"^longest side, pixels +49 +49 +49$", told, re.MULTILINE)
    assert re.search(r"^images also in train +30 +30$", told, re.MULTILINE)
    assert re.search(r"^label ring +\d", told, re.MULTILINE)
    assert "an epoch     4 batches" in told
    assert "dev: 30 of 30 images are also in train: scores will be too high" in told
    assert "have another shape, and lose their borders; set image.fit = 'pad'" in told


def test_what_is_broken_is_told(tmp_path, capsys, error_line):
    for name in ("a", "b"):
        (tmp_path / "all" / name).mkdir(parents=True)
        for number in range(6):
            Image.new("RGB", (9, 9), (number, 0, 0)).save(tmp_path / "all" / name / f"{number}.png")
    (tmp_path / "all" / "a" / "bad.png").write_bytes(b"")
    words = [f"data.train={tmp_path / 'all'}"]
    with pytest.raises(InputError, match="label 'circle' is not in the training data"):
        check(Path("pets.toml"), words)
    told = capsys.readouterr().out
    bad = tmp_path / "all" / "a" / "bad.png"
    assert f"train: 1 images cannot be read (first: {bad}: an empty file, not an image" in told
    assert "train: 6 images are there with different labels; decide on one for each" in told
    assert re.search(r"dev: label '\w+' is not in train, where it would have to be learned", told)
    assert "usually 9 pixels" not in told  # 16 is not twice as much
    err = error_line("train", "pets.toml", *words, "--run", str(tmp_path / "run"))
    assert "label" in err  # of dev, which is looked at first
    alone = [*words, f"data.dev={tmp_path / 'all'}", f"data.test={tmp_path / 'all'}"]
    err = error_line("train", "pets.toml", *alone, "--run", str(tmp_path / "run"))
    assert err == f"regard: {bad}: an empty file, not an image; remove it\n"
    assert not (tmp_path / "run").exists()


def test_score_and_predict(capsys, regard):
    score(Path("runs/pets"))
    told = capsys.readouterr().out
    assert re.search(
        r"^accuracy +\d+\.\d\d  accuracy\|classes:6\|.*size:16x24\|fit:crop\|v:1$", told, re.M
    )
    assert re.search(r"^images +30$", told, re.MULTILINE)
    predict(Path("runs/pets"), [one_of(), one_of()], as_json=True)
    one, other = map(json.loads, capsys.readouterr().out.splitlines())
    assert one == other
    assert one["image"] == one_of()
    assert sum(one["probabilities"].values()) == pytest.approx(1, abs=1e-5)
    done = regard("predict", "runs/pets", one_of())
    assert (done.returncode, done.stdout) == (0, f"{one['label']}\n"), done.stderr
    run = Run.load("runs/pets")
    assert [reply.text for reply in run.predict([one_of()])] == [one["label"]]
    assert run({"image": np.asarray(Image.open(one_of()))}).label == one["label"]


def test_look(capsys, tmp_path):
    look(Path("runs/pets"), one_of())
    told = capsys.readouterr().out
    assert [told.count(f"layer {n}") for n in (1, 2, 3)] == [1, 1, 1]
    assert "Layer 3, by head" in told
    assert [told.count(f"head {n}") for n in (1, 2, 3)] == [1, 1, 0]
    look(Path("runs/pets"), one_of(), layer=1)
    assert "Layer 1, by head" in capsys.readouterr().out
    look(Path("runs/pets"), one_of(), files=[tmp_path / "a.html", tmp_path / "a.npz"])
    found = package.AttentionMap.load(tmp_path / "a.npz")
    assert [layer.weights.shape for layer in found.layers] == [(2, 2, 3)] * 3
    assert {layer.kind for layer in found.layers} == {"grid"}
    seen = Run.load("runs/pets").task.patch_attention_weights(one_of())
    for layer, (name, weights) in zip(found.layers, seen.items(), strict=True):
        assert layer.name == name
        np.testing.assert_allclose(layer.weights, weights, atol=1e-3)
    assert '"image": "iVBOR' in (tmp_path / "a.html").read_text()  # a PNG


def test_what_is_wrong(capsys, tmp_path, error_line):
    (tmp_path / "bad.png").write_bytes(b"\x89PNG")
    bad = str(tmp_path / "bad.png")
    err = error_line("predict", "runs/pets", bad, one_of(), "--strict")
    assert f"input 1: {bad}: not an image in a known format" in err
    assert "input 1: gone.png: there is no such image" in error_line(
        "predict", "runs/pets", "gone.png"
    )
    assert f"{bad}: not an image" in error_line("look", "runs/pets", bad)
    assert "gone.png: there is no such image" in error_line("look", "runs/pets", "gone.png")
    assert "--layer must be from 1 to 3, not 4" in error_line(
        "look", "runs/pets", one_of(), "--layer", "4"
    )
    for words, why in (
        (["image.size=[15,24]"], "image.size = [15, 24] cannot be cut into patches of model"),
        (["image.mean=[0.1,0.2]"], "mean must have one value, or 3, not 2"),
        (["image.std=[0.0]"], "std must be positive"),
        (["model.heads=3"], "dim = 8 cannot be divided among heads = 3"),
        (
            ["model.stem=convolution", "model.patch_size=12"],
            "needs patch_size = 2, 4, 8, …, not 12",
        ),
        (["model.kind=bert"], 'model.kind: must be one of "vit", not "bert"'),
        (["train.tokens_per_batch=64"], "tokens_per_batch is not for images"),
        (["data.train=gone"], "gone: neither a folder of images nor a table; give a folder"),
    ):
        assert why in error_line("train", "pets.toml", *words, "--run", str(tmp_path / "no"))
    assert not (tmp_path / "no").exists()


def test_training_goes_on_exactly(tmp_path):
    """Moves and mirrors are drawn again as they would have been."""
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    words = ["train.save_every=2", "train.keep_finished=true"]
    train(Path("pets.toml"), [*words, "train.steps=4"], folder=whole)
    train(Path("pets.toml"), [*words, "train.steps=2"], folder=parts)
    train(Path("pets.toml"), [*words, "train.steps=4"], folder=parts)
    assert (whole / "weights.safetensors").read_bytes() == (
        parts / "weights.safetensors"
    ).read_bytes()


def test_out_to_hugging_face_and_back(tmp_path, capsys, error_line):
    square = ["image.size=[16,16]", "train.steps=1"]
    train(Path("pets.toml"), square, folder=tmp_path / "run")
    export(tmp_path / "run", tmp_path / "folder")
    import_(str(tmp_path / "folder"), tmp_path / "back")
    one, back = Run.load(tmp_path / "run"), Run.load(tmp_path / "back")
    assert back.task.labels.names == one.task.labels.names
    pixels = np.random.default_rng(0).integers(0, 256, (16, 16, 3), dtype=np.uint8)
    assert back({"image": pixels}).probabilities == pytest.approx(
        one({"image": pixels}).probabilities
    )
    capsys.readouterr()
    assert "a run with image.size of unequal sides cannot be exported" in error_line(
        "export", "runs/pets", str(tmp_path / "no")
    )


def test_more_images_than_memory(monkeypatch):
    """They are read when their batch is made, and are the same."""
    run = Run.load("runs/pets")
    corpus = run.corpus()
    options = batch_options(run.settings)
    kept = next(run.task.batches(corpus, options))
    monkeypatch.setattr("regard.tasks.image.task.MAX_PIXEL_BYTES_IN_MEMORY", 0)
    batches = run.task.batches(corpus, options)
    assert isinstance(batches.examples.examples[0].image, str)
    late = next(batches)
    assert late.indices.tolist() == kept.indices.tolist()
    assert late.inputs["images"].shape == kept.inputs["images"].shape == (8, 3, 16, 24)
