"""`regard look` and `regard check` on tagged sentences."""

import pytest

from regard.tasks.load import resolve_settings
from regard.training.trainer import Trainer

SENTENCES = [("Ada met Bob", "B-who O B-who"), ("in New York", "O B-where I-where")] * 4


@pytest.fixture
def config(tmp_path):
    rows = [zip(text.split(), tags.split(), strict=True) for text, tags in SENTENCES]
    text = "\n\n".join("\n".join(f"{w}\t{t}" for w, t in row) for row in rows)
    (tmp_path / "a.conll").write_text(text + "\n")
    return dict.fromkeys(("train", "dev", "test"), str(tmp_path / "a.conll"))


def trained(folder, data, model):
    settings = {"task": "tag", "data": {"kind": "tagged", **data}, "model": model}
    settings |= {"text": {"kind": "words"}, "train": {"steps": 2, "examples_per_batch": 4}}
    list(Trainer(resolve_settings(settings), folder, lambda _: None))
    return str(folder)


def test_look(tmp_path, config, regard):
    birnn = {"kind": "birnn_attention", "dim": 8, "hidden_dim": 4}
    done = regard("look", trained(tmp_path / "a", config, birnn), "Ada met Bob")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("met") >= 3  # in the text, a row and a column
    assert "weight:" in done.stdout
    done = regard("look", trained(tmp_path / "b", config, {"kind": "bilstm_crf", "dim": 8}), "Ada")
    assert done.returncode == 1
    assert done.stderr == "regard: model BilstmCrf has no attention to observe\n"


def test_check(tmp_path, config, regard):
    data = ", ".join(f'{name} = "{path}"' for name, path in config.items())
    lines = ['task = "tag"', f'data = {{ kind = "tagged", {data} }}', "[model]", 'kind = "birnn"']
    (tmp_path / "names.toml").write_text("\n".join(lines))
    done = regard("check", str(tmp_path / "names.toml"))
    assert done.returncode == 0, done.stderr
    for said in ("label who", "label where", "repeated texts", "4 labels"):
        assert said in done.stdout, done.stdout
