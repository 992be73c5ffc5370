"""Images by class: read once, dealt without repeats, and never of a class that is held out."""

import zipfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from regard.data.formats.class_folders import ClassFolders, ClassImages, PublicImageClasses


def painted(folder: Path, classes: int = 8, each: int = 4, side: int = 6) -> Path:
    """An image says its class by its grey, and its number by one pixel."""
    for label in range(classes):
        place = folder / f"alphabet{label % 2}" / f"character{label}"
        place.mkdir(parents=True)
        for number in range(each):
            pixels = np.full((side, side), 20 * label, np.uint8)
            pixels[0, 0] = 100 + number
            Image.fromarray(pixels).save(place / f"{number}.png")
    return folder


@pytest.fixture
def folder(tmp_path):
    return painted(tmp_path / "all")


def own(folder, **more) -> ClassFolders:
    return ClassFolders(
        folder, **{"ways": 3, "shots": 2, "image_size": (6, 6), "held_out": 0.0} | more
    )


def test_what_is_dealt(folder):
    corpus = own(folder, dev=folder, test=folder)
    dealt = corpus.sample_episodes("train", np.random.default_rng(1), 40, 2, 5)
    assert dealt.examples.shape == (40, 3 * 2 + 5, 6, 6, 1)
    classes, numbers = dealt.examples[..., 3, 3, 0] // 20, dealt.examples[..., 0, 0, 0]
    for row in range(40):
        names = [classes[row][:6][dealt.support_labels[row] == way] for way in range(3)]
        assert all(len(set(name)) == 1 for name in names)
        assert len({name[0] for name in names}) == 3
        told = [names[way][0] for way in dealt.query_labels[row]]
        assert classes[row][6:].tolist() == told
        assert len(set(zip(classes[row], numbers[row], strict=True))) == 11  # none comes twice
    assert set(classes.ravel()) == set(range(8))


def test_classes_of_unequal_size():
    counts = np.array([2, 7, 3])
    pixels = np.arange(12, dtype=np.uint8).reshape(12, 1, 1, 1)
    dealt = ClassImages(pixels, counts).sample_episodes(np.random.default_rng(2), 200, 2, 1, 2)
    of = np.repeat([0, 1, 2], counts)[dealt.examples[..., 0, 0, 0]]
    assert (of[:, 0] != of[:, 1]).all()
    assert (np.take_along_axis(of[:, :2], dealt.query_labels, 1) == of[:, 2:]).all()
    assert set(dealt.examples.ravel()) == set(range(12))


def test_a_class_that_is_turned_is_another_one(folder):
    plain, turned = (
        own(folder).class_images("train"),
        own(folder, rotations=True).class_images("train"),
    )
    assert len(turned.counts) == 4 * len(plain.counts) == 32
    assert turned.pixels.shape == (4 * 32, 6, 6, 1)
    corner = {0: (0, 0), 1: (5, 0), 2: (5, 5), 3: (0, 5)}  # where the mark has gone, turn by turn
    for turn, (row, column) in corner.items():
        assert turned.pixels[32 * turn, row, column, 0] == 100
    assert len(own(folder, rotations=True, dev=folder).class_images("dev").counts) == 8


def test_classes_are_held_out_whole(folder):
    corpus = own(folder, held_out=0.375, shots=1)
    found = {split: set(corpus.classes_by_split[split][1]) for split in corpus.splits}
    assert [len(found[split]) for split in ("train", "dev", "test")] == [2, 3, 3]
    assert len(set.union(*found.values())) == 8
    other = own(folder, held_out=0.375, shots=1, seed=1)
    assert (
        set(other.classes_by_split["dev"][1]) != found["dev"]
        or set(other.classes_by_split["test"][1]) != found["test"]
    )
    assert "alphabet1/character7" in set.union(*found.values())


def test_a_zip_is_a_folder(folder, tmp_path):
    packed = tmp_path / "all.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        for file in folder.rglob("*.png"):
            archive.write(file, file.relative_to(folder))
    one, other = own(folder).class_images("train"), own(packed).class_images("train")
    assert np.array_equal(one.pixels, other.pixels)
    assert np.array_equal(one.counts, other.counts)


def test_records_are_episodes(folder):
    corpus = own(folder, test=folder, eval_episodes=5)
    one, other = (list(corpus.read("test")) for _ in range(2))
    assert len(one) == 5
    for left, right in zip(one, other, strict=True):
        assert np.array_equal(left["examples"], right["examples"])
        grey = left["examples"][:, 3, 3, 0]
        same = left["support_labels"] == left["target"]
        assert (grey[:-1][same] == grey[-1]).all()
        assert (grey[:-1][~same] != grey[-1]).all()
    assert any(
        record["support_labels"].tolist() != [0, 0, 1, 1, 2, 2] for record in one
    )  # in any order


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"ways": 9}, "8 classes, but an episode has data.ways = 9; give more, hold out fewer, or"),
        ({"shots": 4}, "alphabet0/character0 has 4 images, but 5 are needed: data.shots = 4 to"),
        ({"train": "gone"}, "gone: there is no such folder"),
        ({"train": "text"}, "this is no folder and no .zip"),
        ({"train": "empty"}, "empty: no folder with images in it"),
        ({"train": "bad.zip"}, "bad.zip: damaged"),
        ({"train": "broken"}, "broken/b/1.png: not an image of a format that is known; take it"),
    ],
)
def test_what_is_wrong_is_told_in_a_line(more, why, folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("text").write_text("no")
    Path("empty").mkdir()
    Path("bad.zip").write_text("no zip")
    painted(Path("broken/a"), 3)
    Path("broken/b").mkdir()
    for number in range(3):
        Path(f"broken/b/{number}.png").write_bytes(b"no image" if number else image())
    path = more.pop("train", folder)
    with pytest.raises(ValueError) as error:
        own(path, **more).class_images("train")
    assert why in str(error.value)
    assert "\n" not in str(error.value)


def image() -> bytes:
    import io

    packed = io.BytesIO()
    Image.new("L", (6, 6)).save(packed, "PNG")
    return packed.getvalue()


def test_too_many_queries(folder):
    with pytest.raises(ValueError, match=r"needed for train\.queries = 7: make it at most 6"):
        own(folder).sample_batch(1, 0, 2, 7, False)


def test_a_set_by_name(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="name must be one of omniglot, not 'omniglott'; did you"):
        PublicImageClasses("omniglott")
    monkeypatch.setenv("REGARD_MIRROR", str(tmp_path))
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "cache"))
    with pytest.raises(ValueError, match=r"the mirror \(REGARD_MIRROR\) lacks this file"):
        PublicImageClasses().class_images("train")
    assert "licence: MIT" in PublicImageClasses().describe()
