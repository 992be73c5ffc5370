"""Tests of images from folders, tables, IDX files and public datasets."""

import gzip
import struct
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from regard.data.formats.idx import read_idx
from regard.data.formats.image_files import IMAGE_DATASETS, ImageFiles, PublicImages


def idx_bytes(array: np.ndarray) -> bytes:
    head = bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
    return head + array.astype(np.uint8).tobytes()


@pytest.fixture
def folder(tmp_path):
    """Write images of two labels, and files that are not images."""
    for label, count in (("cat", 30), ("dog", 20)):
        (tmp_path / "all" / label).mkdir(parents=True)
        for number in range(count):
            color = (number * 5, 200 if label == "cat" else 0, 7)
            Image.new("RGB", (4, 4), color).save(tmp_path / "all" / label / f"{number}.PNG")
    (tmp_path / "all" / "cat" / ".DS_Store").write_text("x")
    (tmp_path / "all" / "cat" / "notes.txt").write_text("x")
    return tmp_path / "all"


def test_a_folder_for_each_label(folder):
    corpus = ImageFiles(folder, held_out=0.0)
    records = list(corpus.read("train"))
    assert corpus.splits == ("train",)
    assert [record["label"] for record in records] == ["cat"] * 30 + ["dog"] * 20
    assert records[0]["image"] == corpus.location("train", 0) == str(folder / "cat" / "0.PNG")


def test_equal_images_are_in_one_split(folder):
    duplicate = folder / "dog" / "twin.png"
    duplicate.write_bytes((folder / "cat" / "3.PNG").read_bytes())
    corpus = ImageFiles(folder, held_out=0.2)
    split_by_image = {r["image"]: s for s in corpus.splits for r in corpus.read(s)}
    assert set(split_by_image.values()) == {"train", "dev", "test"}
    assert len(split_by_image) == 51
    assert split_by_image[str(duplicate)] == split_by_image[str(folder / "cat" / "3.PNG")]
    repeated = ImageFiles(folder, held_out=0.2)
    assert {r["image"] for r in repeated.read("dev")} == {
        p for p, s in split_by_image.items() if s == "dev"
    }


def test_tables(folder, tmp_path):
    (tmp_path / "list.tsv").write_text("all/cat/1.PNG\tx\tstriped\nall/dog/2.PNG\ty\tplain\n")
    corpus = ImageFiles(tmp_path / "list.tsv", columns=("image", "-", "label"), held_out=0.0)
    first, second = corpus.read("train")
    assert first == {"image": str(tmp_path / "all/cat/1.PNG"), "label": "striped"}
    assert second["label"] == "plain"
    (tmp_path / "list.csv").write_text("all/cat/1.PNG,striped\nall/gone.png,plain\n")
    with pytest.raises(ValueError, match=r"list.csv:2: there is no such image: .*gone\.png"):
        list(ImageFiles(tmp_path / "list.csv", held_out=0.0).read("train"))


@pytest.mark.parametrize("is_gzipped", [False, True])
def test_idx_files(is_gzipped, tmp_path):
    pixels = np.arange(3 * 2 * 4).reshape(3, 2, 4)
    files = []
    for name, array in (("images", pixels), ("labels", np.array([1, 0, 1]))):
        data, suffix = idx_bytes(array), ".gz" if is_gzipped else ""
        files.append(tmp_path / f"{name}{suffix}")
        files[-1].write_bytes(gzip.compress(data) if is_gzipped else data)
    corpus = ImageFiles(files, labels=("no", "yes"), held_out=0.0)
    records = list(corpus.read("train"))
    assert [record["label"] for record in records] == ["yes", "no", "yes"]
    assert np.array_equal(records[2]["image"], pixels[2])
    assert corpus.location("train", 2) == f"{files[0]}: image 3"
    assert [r["label"] for r in ImageFiles(files, held_out=0.0).read("train")] == ["1", "0", "1"]
    with pytest.raises(ValueError, match=r"image 1: label 1, but data\.labels has only 1 names"):
        list(ImageFiles(files, labels=("no",), held_out=0.0).read("train"))


def test_bad_idx(tmp_path):
    path = tmp_path / "a"
    valid = idx_bytes(np.zeros((2, 3, 3)))
    for data, message in (
        (b"", r"not an IDX file \(it begins with ''\)"),
        (b"GIF89a", r"not an IDX file \(it begins with '47494638'\)"),
        (b"\0\0\x0d\x03" + valid[4:], "IDX of type 0x0d; only bytes"),
        (idx_bytes(np.zeros(4)), r"IDX of 1 axes \(labels\), but expected images"),
        (valid[:-1], "less data than the 18 bytes of its header"),
        (valid + b"x", "more data than the 18 bytes"),
        (valid[:9], "damaged IDX file"),
        (b"\0\0\x08\x03" + b"\xff" * 12, "damaged IDX file"),
        (idx_bytes(np.zeros((0, 3, 3))), "an empty array"),
    ):
        path.write_bytes(data)
        with pytest.raises(ValueError, match=message) as caught:
            read_idx(path, 3)
        assert str(caught.value).startswith(f"{path}: ")
    (tmp_path / "b.gz").write_bytes(gzip.compress(valid)[:-9])
    with pytest.raises(ValueError, match="damaged gzip file"):
        read_idx(tmp_path / "b.gz", 3)


def test_error_messages(folder, tmp_path):
    empty = tmp_path / "empty"
    (empty / "cat").mkdir(parents=True)
    (tmp_path / "x.txt").write_text("x")
    (tmp_path / "i").write_bytes(idx_bytes(np.zeros((2, 3, 3))))
    (tmp_path / "l").write_bytes(idx_bytes(np.zeros(3)))
    mismatched = [tmp_path / "i", tmp_path / "l"]
    for call, message in (
        (lambda: ImageFiles(tmp_path / "gone"), "neither a folder of images nor a table; give"),
        (lambda: ImageFiles(tmp_path / "x.txt"), "neither a folder of images nor a table"),
        (lambda: ImageFiles([folder] * 3), "no such|no folder|needs"),
        (lambda: ImageFiles(folder, [folder] * 2), "dev: folder needs one folder, not 2"),
        (lambda: ImageFiles(folder, tmp_path / "gone"), "gone: there is no such folder"),
        (lambda: ImageFiles(folder, columns=("image",)), "columns must name 'label' once"),
        (lambda: ImageFiles(folder, labels=("a", "b")), "labels do not apply to folder"),
        (lambda: list(ImageFiles(empty).read("train")), "cat: no images"),
        (
            lambda: list(ImageFiles(empty / "cat").read("train")),
            "no folders; make one with images for",
        ),
        (
            lambda: list(ImageFiles(mismatched).read("train")),
            "i has 2, .*l 3; give one label for each image",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            call()


def test_public_datasets(tmp_path, monkeypatch):
    """Read small files in place of the real ones."""
    monkeypatch.setenv("REGARD_MIRROR", str(tmp_path / "mirror"))
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "cache"))
    corpus = PublicImages("fashion_mnist")
    corpus.dataset = corpus.dataset._replace(installed_folder=str(tmp_path / "debian"))
    assert corpus.splits == ("train", "dev", "test")
    with pytest.raises(ValueError, match=r"train-images-idx3-ubyte\.gz: the mirror .* lacks"):
        next(corpus.read("train"))
    (tmp_path / "debian").mkdir()
    for name, count in (("train", 60), ("t10k", 5)):
        pixels = np.random.default_rng(count).integers(0, 255, (count, 4, 4))
        for kind, array in (("images-idx3", pixels), ("labels-idx1", np.arange(count) % 10)):
            file = tmp_path / "debian" / f"{name}-{kind}-ubyte.gz"
            file.write_bytes(gzip.compress(idx_bytes(array)))
    assert [r["label"] for r in corpus.read("test")][:2] == ["T-shirt/top", "Trouser"]
    assert sum(1 for split in ("train", "dev") for _ in corpus.read(split)) == 60
    assert "license: MIT" in corpus.describe()
    with pytest.raises(ValueError, match="name must be one of"):
        PublicImages("mnist")
    assert set(IMAGE_DATASETS) == {"fashion_mnist", "fashion_mnist_20k"}
    assert all(len(dataset.labels) == 10 for dataset in IMAGE_DATASETS.values())
    assert Path(IMAGE_DATASETS["fashion_mnist"].installed_folder).is_absolute()
