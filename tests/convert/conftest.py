"""Models of transformers with random weights, saved as their own code saves them."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from torch import nn

SMALL = {
    "bert": (
        "BertForPreTraining",
        {"hidden_size": 12, "num_hidden_layers": 3, "num_attention_heads": 3, "vocab_size": 31}
        | {"intermediate_size": 20, "max_position_embeddings": 16},
    ),
    "roberta": (
        "RobertaForMaskedLM",
        {"hidden_size": 12, "num_hidden_layers": 2, "num_attention_heads": 3, "vocab_size": 31}
        | {"intermediate_size": 20, "max_position_embeddings": 18, "type_vocab_size": 1}
        | {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2, "layer_norm_eps": 1e-5},
    ),
    "distilbert": (
        "DistilBertForMaskedLM",
        {"dim": 12, "n_layers": 2, "n_heads": 3, "vocab_size": 31, "hidden_dim": 20}
        | {"max_position_embeddings": 16},
    ),
    "gpt2": (
        "GPT2LMHeadModel",
        {"n_embd": 12, "n_layer": 3, "n_head": 3, "vocab_size": 31, "n_positions": 16}
        | {"bos_token_id": 30, "eos_token_id": 30},
    ),
    "vit": (
        "ViTForImageClassification",
        {"hidden_size": 12, "num_hidden_layers": 3, "num_attention_heads": 3, "image_size": 12}
        | {"intermediate_size": 20, "patch_size": 4, "num_labels": 5, "layer_norm_eps": 1e-6},
    ),
    "marian": (
        "MarianMTModel",
        {"d_model": 12, "encoder_layers": 2, "decoder_layers": 3, "vocab_size": 31}
        | {"encoder_attention_heads": 3, "decoder_attention_heads": 3, "encoder_ffn_dim": 20}
        | {"decoder_ffn_dim": 20, "max_position_embeddings": 16, "scale_embedding": True}
        | {"activation_function": "swish", "pad_token_id": 30, "eos_token_id": 0}
        | {"decoder_start_token_id": 30, "forced_eos_token_id": 0},
    ),
}


@pytest.fixture(scope="session")
def transformers() -> Any:
    """The library, which warns about many things of its own while it is imported."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("transformers", reason="transformers is not installed")


@pytest.fixture
def theirs(transformers: Any) -> Callable[[str], Any]:
    """Their small model of this type, all of its weights drawn wide, the biases too."""

    def make(kind: str) -> Any:
        name, options = SMALL[kind]
        made = loaded(transformers, name)
        model = made(made.config_class(**options, attn_implementation="eager"))
        for weight in model.parameters():
            if weight.requires_grad:
                nn.init.normal_(weight, std=0.3)
        if kind == "marian":
            nn.init.normal_(model.final_logits_bias, std=0.3)
        return model.eval()

    return make


@pytest.fixture
def reload(transformers: Any) -> Callable[[str, Path], Any]:
    """Their model of this type from a folder."""

    def load(kind: str, folder: Path) -> Any:
        made = loaded(transformers, SMALL[kind][0])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model, told = made.from_pretrained(
                folder, attn_implementation="eager", output_loading_info=True
            )
        assert not told["missing_keys"]
        assert not told["unexpected_keys"]
        return model.eval()

    return load


def loaded(transformers: Any, name: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return getattr(transformers, name)


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
