"""Encoders with heads: starts from another run, frozen encoders, LoRA and decay by layer."""

from pathlib import Path
from typing import Any

import pytest
import torch

from regard.data.build import build_corpus
from regard.run import Run
from regard.tasks.load import resolve_settings

BERT = {"kind": "bert", "dim": 16, "heads": 2, "layers": 2, "max_positions": 40}
VIT = {"patch_size": 8, "dim": 16, "heads": 2, "layers": 1}


def build_text_run(folder: Path, **start: Any) -> Run:
    path = folder / "texts.tsv"
    path.write_text("a fine film\t+\na dull film\t-\n")
    files = dict.fromkeys(("train", "dev", "test"), str(path))
    model = {} if "run" in start else {"model": BERT}
    settings = resolve_settings(
        {"task": "classify", "data": {"kind": "labeled", **files}, "start": start, **model}
    )
    return Run.create(settings, build_corpus(settings.data))


def build_image_run(size: tuple[int, int], **start: Any) -> Run:
    model = {} if "run" in start else {"model": VIT}
    image: dict[str, Any] = {"size": size}
    settings = resolve_settings({"task": "image", "image": image, "start": start, **model})
    return Run.create(settings, build_corpus(settings.data))


def test_a_text_encoder_starts_from_another_run(tmp_path):
    run = build_text_run(tmp_path)
    run.save(tmp_path / "base")
    started = build_text_run(tmp_path, run=str(tmp_path / "base"))
    weights = run.model.encoder.state_dict()
    for name, weight in started.model.encoder.state_dict().items():
        assert torch.equal(weight, weights[name]), name
    adapted = build_text_run(tmp_path, run=str(tmp_path / "base"), lora_rank=2)
    assert adapted.model.encoder.words.weight.equal(weights["words.weight"])
    trained = {name for name, p in adapted.model.named_parameters() if p.requires_grad}
    assert all("parametrizations.weight.0" in n or n.startswith("head.") for n in trained)
    with pytest.raises(ValueError, match=r"with LoRA .* cannot be exported"):
        adapted.task.exportable_model()


def test_what_is_no_run_to_start_from(tmp_path):
    with pytest.raises(ValueError, match=r"nowhere: is not a run, there is no config.toml"):
        build_text_run(tmp_path, run=str(tmp_path / "nowhere"))
    build_image_run((16, 16)).save(tmp_path / "image")
    (tmp_path / "image" / "text.json").write_text("")
    with pytest.raises(ValueError, match=r"a run of task 'image', which has no encoder"):
        build_text_run(tmp_path, run=str(tmp_path / "image"))


def test_an_image_encoder_starts_with_resized_positions(tmp_path):
    run = build_image_run((16, 16))
    run.save(tmp_path / "base")
    started = build_image_run((24, 16), run=str(tmp_path / "base"))
    assert started.model.encoder.size == (24, 16)
    assert started.model.encoder.position.weight.shape == (1 + 3 * 2, 16)
    weights = run.model.encoder.state_dict()
    for name, weight in started.model.encoder.state_dict().items():
        assert name == "position.weight" or torch.equal(weight, weights[name]), name


def test_a_frozen_encoder_stays_in_evaluation_mode(tmp_path):
    model = build_text_run(tmp_path, freeze=True).model.train()
    assert model.training
    assert not model.encoder.training
    trained = {name for name, p in model.named_parameters() if p.requires_grad}
    assert {name.split(".")[0] for name in trained} == {"head"}


def test_lower_layers_have_lower_rates(tmp_path):
    run = build_text_run(tmp_path, layer_decay=0.5)
    groups = run.task.parameter_groups()
    assert [group.rate for group in groups] == [0.5**n for n in range(4)]  # head, 2 layers, words
    assert sum(len(group.parameters) for group in groups) == len(list(run.model.parameters()))
    [group] = build_text_run(tmp_path).task.parameter_groups()
    assert group.rate == 1.0
