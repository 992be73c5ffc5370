"""Tests of captions from files: grouping by image, splits, and error messages."""

import json

import pytest
from PIL import Image

from regard.data.formats.captions import CaptionFiles, record_captions


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "photos").mkdir()
    for number in range(40):
        Image.new("RGB", (9, 9), (5 * number, 0, 0)).save(tmp_path / "photos" / f"{number}.png")
    return tmp_path


def write_lines(folder, *lines):
    (folder / "all.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return CaptionFiles(folder / "all.jsonl", held_out=0.0)


def write_coco(base, content, **settings):
    (base / "all.json").write_text(content if isinstance(content, str) else json.dumps(content))
    return CaptionFiles(base / "all.json", held_out=0.0, **settings)


def test_lines_of_one_image_are_one_record(folder):
    first, second = "photos/0.png", "photos/1.png"
    corpus = write_lines(
        folder,
        {"image": first, "caption": "a red dot"},
        {"image": second, "caption": ["one", " two "]},
        {"image": first, "caption": "nothing"},
    )
    assert list(corpus.read("train")) == [
        {"image": str(folder / first), "captions": ("a red dot", "nothing")},
        {"image": str(folder / second), "captions": ("one", "two")},
    ]
    assert corpus.location("train", 1).startswith(f"{folder / 'all.jsonl'}:2 (")
    assert record_captions({"caption": "a"}) == ("a",)


def test_coco(folder):
    content = {
        "images": [{"id": 7, "file_name": "0.png"}, {"id": 9, "file_name": "1.png"}],
        "annotations": [
            {"image_id": 9, "caption": "b"},
            {"image_id": 7, "caption": "a"},
            {"image_id": 9, "caption": "c"},
        ],
    }
    corpus = write_coco(folder, content, folder=str(folder / "photos"))
    assert [record_captions(record) for record in corpus.read("train")] == [("a",), ("b", "c")]


def test_held_out_splits_share_no_image(folder):
    lines = [{"image": f"photos/{n}.png", "caption": f"number {n}"} for n in range(40)]
    (folder / "all.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    corpus = CaptionFiles(folder / "all.jsonl", held_out=0.2)
    images_by_split = [
        {r["image"] for r in corpus.read(split)} for split in ("train", "dev", "test")
    ]
    assert sum(map(len, images_by_split)) == 40 == len(set().union(*images_by_split))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ({"image": "", "caption": "a"}, ":1: 'image' is empty; name the image of the caption"),
        ({"image": "photos/0.png", "caption": ""}, ":1: 'caption' is empty"),
        ({"image": "photos/0.png", "caption": []}, ":1: 'caption' is empty"),
        ({"image": "photos/0.png", "caption": "  "}, ":1: the caption is empty; write one"),
        ({"image": "photos/0.png", "caption": [3]}, ":1: a caption must be text, not int"),
        ({"image": "photos/0.png"}, ":1: no field 'caption'; the fields are: image"),
        ({"image": "no.png", "caption": "a"}, ":1: there is no such image: .*no.png"),
        ("text", ":1: expected an object with the field 'image', not a str"),
    ],
)
def test_bad_lines(folder, line, message):
    with pytest.raises(ValueError, match=message):
        list(write_lines(folder, line).read("train"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", r"all.json: not JSON \("),
        ("[]", "all.json: must be an object with images and annotations"),
        ({"images": []}, "'annotations' is missing or not a list; give a file in the"),
        ({"images": [], "annotations": []}, "all.json: no images; add at least one"),
        ({"images": [{"id": 1}], "annotations": []}, "image 1: no field 'file_name'"),
        ({"images": [{"id": [], "file_name": "a"}], "annotations": []}, "'id' must not be list"),
        (
            {"images": [{"id": 1, "file_name": "photos/0.png"}], "annotations": []},
            "image 1: an image without a caption; add one",
        ),
        (
            {"images": [], "annotations": [{"image_id": 3, "caption": "a"}]},
            "annotation 1: no image has the id 3; add it, or remove",
        ),
    ],
)
def test_bad_coco(folder, content, message):
    with pytest.raises(ValueError, match=message):
        list(write_coco(folder, content).read("train"))


def test_bad_settings(folder):
    (folder / "a.txt").write_text("a")
    with pytest.raises(ValueError, match=r"format from \.txt \(\.jsonl, \.ndjson, \.json\)"):
        CaptionFiles(folder / "a.txt")
    with pytest.raises(ValueError, match="there is no such file"):
        CaptionFiles(folder / "no.jsonl")
    with pytest.raises(ValueError, match="train: jsonl needs one file, not 2"):
        CaptionFiles([folder / "a.txt", folder / "a.txt"], format="jsonl")
    with pytest.raises(ValueError, match="no: there is no such folder"):
        CaptionFiles(folder / "a.txt", format="jsonl", folder="no")
