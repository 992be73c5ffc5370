"""The catalogue: building by name, its errors, what it imports, and how large the models are."""

import subprocess
import sys

import pytest
import torch

from regard.models.catalogue import MODELS, build_model, model_class, model_settings
from regard.tasks.catalogue import tasks_of_model

GERMAN, ENGLISH = 7853, 5893  # the vocabularies of a public ladder of tutorials on Multi30k


def count(kind: str, source_size: int = GERMAN, target_size: int = ENGLISH, **settings) -> int:
    with torch.device("meta"):
        sizes = {"source_size": source_size, "target_size": target_size}
        return sum(p.numel() for p in build_model(kind, {**sizes, **settings}).parameters())


METHODS = {
    "translate": ("remember", "teacher_forced", "logits", "start", "step", "select"),
    "summarize": ("remember", "teacher_forced", "logits", "start", "step", "select"),
    "language": ("begin", "read", "logits", "start", "step", "select", "detach"),
    "chat": ("begin", "read", "logits", "start", "step", "select", "detach"),
    "classify": ("encode",),
    "pretrain": ("encode", "logits"),
    "tag": ("encode",),
    "understand": ("encode",),
    "answer": ("encode",),
    "image": ("encode", "grid"),
    "caption": ("remember", "teacher_forced", "logits", "start", "step", "select", "grid"),
    "music": ("begin", "read", "logits", "start", "step", "select", "detach"),
    "copy": ("episode",),
    "recall": ("episode",),
    "fold": ("encode",),
    "bandit": ("episode", "begin", "read"),
    "fewshot": ("episode",),
}


@pytest.mark.parametrize("kind", MODELS)
def test_every_entry_can_be_built(kind):
    sizes = {"source_size": 6, "target_size": 6, "size": 6, "dim": 8, "heads": 2, "patch_size": 3}
    sizes["steps"] = 4
    model = build_model(
        kind, {name: n for name, n in sizes.items() if name in model_settings(kind)}
    )
    assert type(model) is model_class(kind)
    assert tasks_of_model(kind)
    for task in tasks_of_model(kind):
        for method in METHODS[task]:
            assert callable(getattr(model, method))
    if "encode" not in METHODS[tasks_of_model(kind)[0]]:
        assert isinstance(model.cross_attentions, tuple)


def test_unknown_names_get_the_near_miss():
    with pytest.raises(ValueError, match="no model 'rnsearch'; did you mean 'rnnsearch'"):
        build_model("rnsearch", {})
    with pytest.raises(ValueError, match="no model 'zzz'; there are encdec, seq2seq"):
        build_model("zzz", {})
    sizes = {"source_size": 5, "target_size": 5}
    with pytest.raises(ValueError, match="luong: unknown setting 'hiden_dim'; did you mean 'hidd"):
        build_model("luong", {**sizes, "hiden_dim": 3})
    with pytest.raises(ValueError, match="luong: target_size is missing"):
        build_model("luong", {"source_size": 5})


def test_settings_are_those_of_the_class():
    parameters = model_settings("transformer")
    assert parameters["heads"].default == 8
    assert "self" not in parameters


def test_importing_the_catalogue_imports_no_torch():
    code = "import sys, regard.models.catalogue; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_the_tutorial_lstm_is_seq2seq():
    assert count("seq2seq", dim=256, hidden_dim=512, layers=2) == 13_898_501


def test_the_tutorial_transformer_is_ours():
    settings = {"dim": 256, "heads": 8, "hidden_dim": 512, "layers": 3}
    assert count("transformer", **settings, positions="learned", max_positions=100) == 9_038_341


def test_the_tutorial_gru_is_chos_below_the_output():
    """The tutorial has a linear layer over [word; state; summary], without V, V' and maxout."""
    units, hidden = 300, 512
    total = count("encdec", dim=256, hidden_dim=hidden, output_dim=units)
    total -= 2 * (hidden * hidden + hidden)  # V, V'
    total -= 2 * units * (hidden + 256 + hidden + 1) + (units + 1) * ENGLISH
    total += (hidden + 256 + hidden + 1) * ENGLISH
    assert total == 14_219_781


def test_the_tutorial_attention_is_bahdanaus_but_for_its_ends():
    """The tutorial starts from both last states. It has a bias inside the score, and a linear
    layer over [word; context; state] instead of maxout."""
    units, hidden = 300, 512
    total = count("rnnsearch", dim=256, hidden_dim=hidden, output_dim=units)
    total += hidden * hidden  # both directions
    total += hidden  # the bias
    total -= 2 * units * (hidden + 256 + 2 * hidden + 1) + (units + 1) * ENGLISH
    total += (hidden + 256 + 2 * hidden + 1) * ENGLISH
    assert total == 20_518_405


@pytest.mark.parametrize(
    ("settings", "millions"),
    [({"dim": 512, "heads": 8}, 65), ({"dim": 1024, "heads": 16}, 213)],
    ids=["base", "big"],
)
def test_the_papers_transformers_are_as_large_as_it_says(settings, millions):
    """Table 3, with the 37000 entries of sec. 5.1; base has 63 million."""
    size = count("transformer", 37_000, 37_000, layers=6, tie_embeddings="all", **settings)
    assert size / 1e6 == pytest.approx(millions, rel=0.04)
