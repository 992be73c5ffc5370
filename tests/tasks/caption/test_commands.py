"""Captions on the command line: from init to look, and one line for what fails."""

import json
import re
from pathlib import Path

import pytest
from PIL import Image

from regard.cli.check import check
from regard.cli.init import init
from regard.cli.look import look
from regard.cli.predict import predict
from regard.cli.score import score
from regard.cli.train import train
from regard.data.synthetic.digits import Digits
from regard.view.attention_map import AttentionMap

CONFIG = """
task = "caption"
data = { kind = "captions", train = "all.jsonl", dev = "all.jsonl", test = "all.jsonl" }
image = { size = [16, 24], channels = 1, fit = "stretch" }
model = { kind = "show_attend", dim = 8, image_dim = 4, pooling_layers = 2 }
train.steps = 3
train.examples_per_batch = 8
train.validate_every = 2
train.crop_padding = 1
train.doubly_stochastic_weight = 0.1
decode = { kind = "beam", width = 2, max_length = 5 }
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Images with captions, and a run on them."""
    folder = tmp_path_factory.mktemp("captions")
    lines = []
    for number, record in enumerate(Digits(20, side=16).read("train")):
        Image.fromarray(record["image"][..., 0]).save(folder / f"{number}.png")
        lines.append(json.dumps({"image": f"{number}.png", "caption": record["caption"]}))
    lines.append(json.dumps({"image": "0.png", "caption": "some digits"}))
    (folder / "all.jsonl").write_text("\n".join(lines))
    (folder / "all.toml").write_text(CONFIG)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        train(Path("all.toml"))
    return folder


@pytest.fixture(autouse=True)
def _there(folder, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.delenv("REGARD_DEBUG", raising=False)


def test_init_and_check(capsys):
    init("caption")
    text = capsys.readouterr().out
    assert 'kind = "digits"' in text
    assert "doubly" in text
    check(Path("all.toml"))
    told = capsys.readouterr().out
    assert re.search(r"^images +20 +20 +20$", told, re.MULTILINE)
    assert re.search(r"^captions +21 +21 +21$", told, re.MULTILINE)
    assert re.search(r"^caption tokens, median +\d+", told, re.MULTILINE)
    assert "an epoch     3 batches" in told
    assert "dev: 20 of 20 images are also in train: scores will be too high" in told
    check(Path("all.toml"), ["train.max_tokens=3"])
    assert (
        "of the captions are longer than train.max_tokens = 3; raise it" in capsys.readouterr().out
    )


def test_score_and_predict(capsys):
    score(Path("runs/all"))
    told = capsys.readouterr().out
    assert re.search(r"^bleu4 +\d+\.\d\d  nrefs:var\|case:lc\|.*\|order:4$", told, re.MULTILINE)
    assert re.search(r"^cider +\d+\.\d\d  cider\|d\|", told, re.MULTILINE)
    assert re.search(r"^images +20$", told, re.MULTILINE)
    assert "pointing" not in told  # of these data nobody knows
    predict(Path("runs/all"), ["0.png", "0.png"], as_json=True)
    one, other = map(json.loads, capsys.readouterr().out.splitlines())
    assert one == other
    assert one["image"] == "0.png"
    assert one["captions"][0]["log_prob"] < 0


def test_look(capsys):
    look(Path("runs/all"), "0.png", target="3 top left")
    told = capsys.readouterr().out
    assert told.startswith("3 top left\n")
    assert "1 3 " in told
    assert "4 </s>" in told
    look(Path("runs/all"), "0.png", target="3 top left", files=[Path("a.npz"), Path("a.html")])
    found = AttentionMap.load("a.npz")
    assert [one.name for one in found.layers] == ["1 3", "2 top", "3 left", "4 </s>"]
    assert found.layers[0].kind == "grid"
    assert found.layers[0].weights.shape == (1, 4, 6)
    assert found.layers[0].weights.sum() == pytest.approx(1, abs=1e-3)
    assert "data:image/png;base64," in Path("a.html").read_text()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["predict", "runs/all", "no.png"], "input 1: no.png: there is no such image"),
        (["predict", "runs/all", "all.toml"], "input 1: all.toml: not an image"),
        (["look", "runs/all", "no.png"], "TEXT: no.png: there is no such image"),
        (
            ["train", "all.toml", "model.normalize=reinforce"],
            (
                "train.doubly_stochastic_weight is for soft attention, not for hard "
                "attention; set it to 0"
            ),
        ),
        (
            [
                "train",
                "all.toml",
                "train.doubly_stochastic_weight=0",
                "train.soft_attention_steps=5",
            ],
            "train.soft_attention_steps is for hard attention",
        ),
        (["train", "all.toml", "model.pooling_layers=5"], "too small for model.pooling_layers = 5"),
        (
            ["train", "all.toml", "train.max_tokens=1", "--run", "short"],
            "no caption is left; is the data",
        ),
        (
            ["train", "all.toml", "decode.coverage_penalty=0.2"],
            "decode.coverage_penalty needs a source text; set it to 0",
        ),
        (
            ["train", "all.toml", "train.metric=pointing", "--run", "other"],
            "train.metric = 'pointing' is not known for this data and model",
        ),
    ],
)
def test_bad_input_is_one_line(error_line, words, says):
    assert says in error_line(*words)
