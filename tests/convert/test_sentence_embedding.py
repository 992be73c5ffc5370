"""Poolings of sentence-transformers as settings."""

import json
from pathlib import Path
from typing import Any

import pytest

from regard.convert.sentence_embedding import read_sentence_embedding


def write_modules(folder: Path, *names: str, pooling: dict[str, Any] | None = None) -> None:
    modules = [
        {
            "idx": n,
            "path": f"{n}_{name}" if n else "",
            "type": f"sentence_transformers.models.{name}",
        }
        for n, name in enumerate(names)
    ]
    (folder / "modules.json").write_text(json.dumps(modules))
    if pooling is not None:
        (folder / "1_Pooling").mkdir()
        (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))


@pytest.mark.parametrize(
    ("pooling", "ours"),
    [
        ({"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False}, "mean"),
        ({"pooling_mode_cls_token": True, "word_embedding_dimension": 8}, "first"),
        ({"pooling_mode": "max"}, "max"),
    ],
)
def test_pooling_and_length_are_read(pooling, ours, tmp_path):
    write_modules(tmp_path, "Transformer", "Pooling", pooling=pooling)
    (tmp_path / "sentence_bert_config.json").write_text('{"max_seq_length": 128}')
    settings, notes = read_sentence_embedding(tmp_path)
    assert settings == {"pooling": ours, "normalize": False, "max_tokens": 126}
    assert notes == ()


def test_a_plain_folder_has_no_settings(tmp_path):
    assert read_sentence_embedding(tmp_path) == ({}, ())


def test_other_parts_are_noted(tmp_path):
    pooling = {"pooling_mode_mean_tokens": True, "pooling_mode_max_tokens": True}
    write_modules(tmp_path, "Transformer", "Pooling", "Dense", "Normalize", pooling=pooling)
    (tmp_path / "config_sentence_transformers.json").write_text('{"default_prompt_name": "query"}')
    settings, notes = read_sentence_embedding(tmp_path)
    assert settings == {"pooling": "mean", "normalize": True}
    assert "module Dense is not supported" in notes[0]
    assert "this pooling is not supported" in notes[1]
    assert "the prompt 'query' is not added" in notes[2]


@pytest.mark.parametrize(
    "content", ["{", "5", "[1]", '[{"type": "x"}]', '[{"type": "a.Pooling", "path": "../up"}]']
)
def test_wrong_modules_are_one_line(content, tmp_path):
    (tmp_path / "modules.json").write_text(content)
    with pytest.raises(
        ValueError, match=r"modules.json: (not JSON|must hold a list|module 1)"
    ) as error:
        read_sentence_embedding(tmp_path)
    assert "\n" not in str(error.value)
