"""Tests of images by class: sampled episodes, held-out classes, zips and error messages."""

import zipfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from regard.data.formats.class_folders import ClassFolders, ClassImages, PublicImageClasses


def write_classes(folder: Path, classes: int = 8, images_per_class: int = 4, side: int = 6) -> Path:
    """Write images whose gray level encodes the class, and one pixel the number."""
    for label in range(classes):
        class_folder = folder / f"alphabet{label % 2}" / f"character{label}"
        class_folder.mkdir(parents=True)
        for number in range(images_per_class):
            pixels = np.full((side, side), 20 * label, np.uint8)
            pixels[0, 0] = 100 + number
            Image.fromarray(pixels).save(class_folder / f"{number}.png")
    return folder


@pytest.fixture
def folder(tmp_path):
    return write_classes(tmp_path / "all")


def build_corpus(folder, **options) -> ClassFolders:
    return ClassFolders(
        folder, **{"ways": 3, "shots": 2, "image_size": (6, 6), "held_out": 0.0} | options
    )


def test_sampled_episodes(folder):
    corpus = build_corpus(folder, dev=folder, test=folder)
    episodes = corpus.sample_episodes("train", np.random.default_rng(1), 40, 2, 5)
    assert episodes.examples.shape == (40, 3 * 2 + 5, 6, 6, 1)
    classes, numbers = episodes.examples[..., 3, 3, 0] // 20, episodes.examples[..., 0, 0, 0]
    for row in range(40):
        names = [classes[row][:6][episodes.support_labels[row] == way] for way in range(3)]
        assert all(len(set(name)) == 1 for name in names)
        assert len({name[0] for name in names}) == 3
        expected = [names[way][0] for way in episodes.query_labels[row]]
        assert classes[row][6:].tolist() == expected
        assert len(set(zip(classes[row], numbers[row], strict=True))) == 11  # no image occurs twice
    assert set(classes.ravel()) == set(range(8))


def test_classes_of_unequal_size():
    counts = np.array([2, 7, 3])
    pixels = np.arange(12, dtype=np.uint8).reshape(12, 1, 1, 1)
    episodes = ClassImages(pixels, counts).sample_episodes(np.random.default_rng(2), 200, 2, 1, 2)
    class_of_example = np.repeat([0, 1, 2], counts)[episodes.examples[..., 0, 0, 0]]
    assert (class_of_example[:, 0] != class_of_example[:, 1]).all()
    assert (
        np.take_along_axis(class_of_example[:, :2], episodes.query_labels, 1)
        == class_of_example[:, 2:]
    ).all()
    assert set(episodes.examples.ravel()) == set(range(12))


def test_rotated_classes_are_new_classes(folder):
    plain, rotated = (
        build_corpus(folder).class_images("train"),
        build_corpus(folder, rotations=True).class_images("train"),
    )
    assert len(rotated.counts) == 4 * len(plain.counts) == 32
    assert rotated.pixels.shape == (4 * 32, 6, 6, 1)
    corner_by_rotation = {
        0: (0, 0),
        1: (5, 0),
        2: (5, 5),
        3: (0, 5),
    }  # of the marked pixel
    for rotation, (row, column) in corner_by_rotation.items():
        assert rotated.pixels[32 * rotation, row, column, 0] == 100
    assert len(build_corpus(folder, rotations=True, dev=folder).class_images("dev").counts) == 8


def test_classes_are_held_out_whole(folder):
    corpus = build_corpus(folder, held_out=0.375, shots=1)
    classes_by_split = {split: set(corpus.classes_by_split[split][1]) for split in corpus.splits}
    assert [len(classes_by_split[split]) for split in ("train", "dev", "test")] == [2, 3, 3]
    assert len(set.union(*classes_by_split.values())) == 8
    other = build_corpus(folder, held_out=0.375, shots=1, seed=1)
    assert (
        set(other.classes_by_split["dev"][1]) != classes_by_split["dev"]
        or set(other.classes_by_split["test"][1]) != classes_by_split["test"]
    )
    assert "alphabet1/character7" in set.union(*classes_by_split.values())


def test_zip_equals_folder(folder, tmp_path):
    zip_path = tmp_path / "all.zip"
    with zipfile.ZipFile(zip_path, "w") as archive:
        for file in folder.rglob("*.png"):
            archive.write(file, file.relative_to(folder))
    from_folder, from_zip = (
        build_corpus(folder).class_images("train"),
        build_corpus(zip_path).class_images("train"),
    )
    assert np.array_equal(from_folder.pixels, from_zip.pixels)
    assert np.array_equal(from_folder.counts, from_zip.counts)


def test_records_are_episodes(folder):
    corpus = build_corpus(folder, test=folder, eval_episodes=5)
    records, repeated = (list(corpus.read("test")) for _ in range(2))
    assert len(records) == 5
    for left, right in zip(records, repeated, strict=True):
        assert np.array_equal(left["examples"], right["examples"])
        gray = left["examples"][:, 3, 3, 0]
        is_same_class = left["support_labels"] == left["target"]
        assert (gray[:-1][is_same_class] == gray[-1]).all()
        assert (gray[:-1][~is_same_class] != gray[-1]).all()
    assert any(
        record["support_labels"].tolist() != [0, 0, 1, 1, 2, 2] for record in records
    )  # in any order


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ways": 9}, "8 classes, but an episode has data.ways = 9; add classes, hold out fewer,"),
        ({"shots": 4}, "alphabet0/character0 has 4 images, but 5 are needed: data.shots = 4, and"),
        ({"train": "gone"}, "gone: there is no such folder"),
        ({"train": "text"}, "neither a folder nor a .zip"),
        ({"train": "empty"}, "empty: no folder with images"),
        ({"train": "bad.zip"}, "bad.zip: damaged"),
        ({"train": "broken"}, "broken/b/1.png: not an image in a known format; remove it"),
    ],
)
def test_error_messages(options, message, folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("text").write_text("no")
    Path("empty").mkdir()
    Path("bad.zip").write_text("no zip")
    write_classes(Path("broken/a"), 3)
    Path("broken/b").mkdir()
    for number in range(3):
        Path(f"broken/b/{number}.png").write_bytes(b"no image" if number else png_bytes())
    path = options.pop("train", folder)
    with pytest.raises(ValueError) as error:
        build_corpus(path, **options).class_images("train")
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def png_bytes() -> bytes:
    import io

    buffer = io.BytesIO()
    Image.new("L", (6, 6)).save(buffer, "PNG")
    return buffer.getvalue()


def test_too_many_queries(folder):
    with pytest.raises(ValueError, match=r"train\.queries = 7 needs 5; set it to at most 6"):
        build_corpus(folder).sample_batch(1, 0, 2, 7, False)


def test_public_dataset(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="name must be one of omniglot, not 'omniglott'; did you"):
        PublicImageClasses("omniglott")
    monkeypatch.setenv("REGARD_MIRROR", str(tmp_path))
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "cache"))
    with pytest.raises(ValueError, match=r"the mirror \(REGARD_MIRROR\) lacks this file"):
        PublicImageClasses().class_images("train")
    assert "license: MIT" in PublicImageClasses().describe()
