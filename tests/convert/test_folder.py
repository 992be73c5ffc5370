"""What is wrong with a folder is said in one line."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from regard.convert.config import build_config
from regard.convert.folder import build_imported_model, read_folder, write_folder
from regard.models.bert import Bert
from regard.models.gpt2 import Gpt2
from regard.models.transformer import Transformer

SETTINGS = {"size": 7, "dim": 4, "heads": 2, "layers": 2, "max_positions": 6}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_folder(tmp_path / "gpt2", "gpt2", SETTINGS, Gpt2(**SETTINGS).state_dict())


def config(**changes: Any) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        path = folder / "config.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))

    return change


def tensors(change: Callable[[dict[str, torch.Tensor]], Any]) -> Callable[[Path], None]:
    def changed(folder: Path) -> None:
        path = folder / "model.safetensors"
        found = load_file(path)
        change(found)
        save_file(found, path)

    return changed


def pickled(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


def no_layer(found: dict[str, torch.Tensor]) -> None:
    for name in [name for name in found if ".h.1." in name]:
        del found[name]


def vocabulary(size: int) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *(f"w{i}" for i in range(size - 4))]
        (folder / "vocab.txt").write_text("\n".join(words))

    return write


def embedding(tensors):
    return next(tensor for name, tensor in tensors.items() if name.endswith("wte.weight"))


def quantize(tensors):
    name = next(name for name in tensors if name.endswith("wte.weight"))
    tensors[name] = tensors[name].to(torch.int8)


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (
            config(model_type="t5"),
            r"model_type 't5' is not supported; supported: bert, roberta, dist",
        ),
        (config(model_type=None), r"config.json: model_type None is not supported"),
        (config(activation_function="mish"), r"activation_function 'mish' is not supported"),
        (
            config(scale_attn_weights=False),
            r"scale_attn_weights = false is not supported; supported: true",
        ),
        (config(n_embd="4"), r"config.json: n_embd must be of type int, not '4'"),
        (config(n_head=3), r"config.json: dim 4 is not a multiple of heads 3"),
        (config(n_embd=6), r"wte.weight \(is \[7, 4\], should be \[7, 6\]\), .* and \d+ more"),
        (lambda f: (f / "config.json").write_text("{"), r"config.json: not JSON"),
        (lambda f: (f / "config.json").write_text("[]"), r"must hold a JSON object, not a list"),
        (lambda f: (f / "config.json").unlink(), r"config.json: is missing"),
        (lambda f: (f / "model.safetensors").unlink(), r"model.safetensors: is missing"),
        (lambda f: (f / "model.safetensors").write_text("x"), r"model.safetensors: is damaged"),
        (pickled, r"a pickle, .* never loaded; .* convert it in that folder: python -c"),
        (tensors(no_layer), r"tensors are missing: h.1.\S+, h.1.\S+, h.1.\S+ and 9 more"),
        (
            tensors(lambda f: f.update(odd=torch.ones(1))),
            r"gpt2: tensors are unknown: odd$",
        ),
        (
            tensors(lambda f: f.update({"lm_head.weight": torch.ones(7, 4)})),
            r"tensors differ from the word embeddings, which is not supported: lm_head.weight",
        ),
        (
            tensors(lambda f: embedding(f).view(-1)[:1].fill_(float("nan"))),
            r"tensors contain NaN or infinite values: wte",
        ),
        (
            tensors(quantize),
            r"tensors are whole numbers, but quantized models are not supported: wte",
        ),
        (config(n_embd=10**9), r"dim = 1000000000 is more than 65,536; .* REGARD_UNLIMITED=1"),
        (config(n_layer=10**9), r"layers = 1000000000 is more than 1,000; .* REGARD_UNLIMITED=1"),
        (config(model_type=["gpt2"]), r"model_type \['gpt2'\] is not supported"),
        (vocabulary(8), r"ids up to 7, but the word embeddings have 7 rows"),
        (lambda f: (f / "tokenizer.json").write_text("{}"), r"tokenizer.json: not a tokenizer"),
        (lambda f: (f / "vocab.txt").write_text("a\nb"), r"vocab.txt: not a tokenizer.*\[SEP\]"),
    ],
)
def test_what_is_wrong_is_told_in_one_line(damage, told, folder):
    damage(folder)
    with pytest.raises(ValueError, match=told) as error:
        read_folder(folder)
    assert "\n" not in str(error.value)


def test_a_folder_must_be_one(folder):
    with pytest.raises(ValueError, match=r"config.json: is a file; give the folder"):
        read_folder(folder / "config.json")
    with pytest.raises(ValueError, match=r"none: there is no such folder"):
        read_folder(folder / "none")


def test_parts_must_be_files_of_the_folder(folder):
    (folder / "model.safetensors").rename(folder.parent / "outside")
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"wte.weight": "../outside"}}))
    with pytest.raises(ValueError, match=r"'../outside' is not a file of this folder"):
        read_folder(folder)
    index.write_text(json.dumps({"weight_map": {"wte.weight": "part"}}))
    with pytest.raises(
        ValueError, match=r"part: is missing, but model\.safetensors\.index\.json names it"
    ):
        read_folder(folder)


def test_what_is_left_behind_is_noted(folder):
    assert "there is no tokenizer" in read_folder(folder).notes[0]
    (folder / "source.spm").write_bytes(b"")
    assert "sentencepiece files (*.spm) are not supported" in read_folder(folder).notes[0]
    vocabulary(7)(folder)
    assert read_folder(folder).notes == ()


def test_names_with_and_without_prefix_are_read(folder):
    with_prefix = read_folder(folder)
    path = folder / "model.safetensors"
    found = load_file(path)
    assert "transformer.wte.weight" in found
    save_file({name.removeprefix("transformer."): t for name, t in found.items()}, path)
    without = read_folder(folder)
    assert with_prefix.weights.keys() == without.weights.keys()


def test_weights_in_half_precision_become_whole(folder):
    tensors(lambda f: f.update({n: t.bfloat16() for n, t in f.items()}))(folder)
    imported = read_folder(folder)
    assert {tensor.dtype for tensor in imported.weights.values()} == {torch.float32}
    build_imported_model(imported).teacher_forced(None, torch.zeros(1, 6, dtype=torch.long))


def test_our_own_models_come_back(tmp_path):
    """Settings left at their defaults are written out."""
    cases = [
        ("bert", Bert, {"size": 7, "dim": 4, "heads": 2, "layers": 1, "pretrain": "both"}),
        ("gpt2", Gpt2, SETTINGS),
        (
            *("marian", Transformer, {"source_size": 7, "target_size": 7, "dim": 8, "layers": 1}),
            {"tie_embeddings": "all", "positions": "halves", "output_bias": True},
        ),
    ]
    for name, made, settings, *more in cases:
        whole = {**settings, **(more[0] if more else {})}
        model = made(**whole)
        write_folder(tmp_path / name, name, whole, model.state_dict())
        again = build_imported_model(read_folder(tmp_path / name)).state_dict()
        assert again.keys() == model.state_dict().keys()
        for key, tensor in model.state_dict().items():
            assert torch.equal(again[key], tensor), key


def test_nothing_is_written_over_and_nothing_half(folder, monkeypatch):
    weights = Gpt2(**SETTINGS).state_dict()
    with pytest.raises(ValueError, match="gpt2: exists already; name a new or an empty folder"):
        write_folder(folder, "gpt2", SETTINGS, weights)
    with pytest.raises(ValueError, match="model_type 't5' is not supported"):
        write_folder(folder.parent / "x", "t5", SETTINGS, weights)

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("regard.convert.folder.to_json_bytes", full)
    with pytest.raises(OSError, match="No space left"):
        write_folder(folder.parent / "new", "gpt2", SETTINGS, weights)
    assert [path.name for path in folder.parent.iterdir()] == ["gpt2"]


def test_what_they_do_not_have_cannot_be_written():
    sizes = {"source_size": 5, "target_size": 5, "tie_embeddings": "all", "output_bias": True}
    with pytest.raises(
        ValueError,
        match=r"model.positions = 'sinusoidal' cannot be exported as marian; .* 'halves'",
    ):
        build_config("marian", sizes)
    with pytest.raises(ValueError, match=r"model.pretrain = 'both' cannot be exported as roberta"):
        build_config("roberta", {"size": 5, "pretrain": "both"})


def test_an_empty_folder_is_filled(tmp_path):
    (tmp_path / "there").mkdir()
    write_folder(tmp_path / "there", "gpt2", SETTINGS, Gpt2(**SETTINGS).state_dict())
    assert read_folder(tmp_path / "there").kind == "gpt2"
    shutil.rmtree(tmp_path / "there")
