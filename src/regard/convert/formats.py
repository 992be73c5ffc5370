"""Tables of the names that Hugging Face and regard give to settings and weights.

In names, {i} is the number of a layer and * stands for `weight` and `bias`. "Ours" is regard,
"theirs" is Hugging Face.
"""

from typing import Literal, NamedTuple

SettingValue = bool | int | float | str | None

ACTIVATIONS = {  # theirs: ours
    "gelu": "gelu",
    "gelu_new": "tanh_gelu",
    "gelu_pytorch_tanh": "tanh_gelu",
    "relu": "relu",
    "silu": "swish",
    "swish": "swish",
    "tanh": "tanh",
}


class SettingMapping(NamedTuple):
    """A setting of ours, the option of theirs with the same meaning, and its default value.

    The value of theirs is larger by `offset`.
    """

    ours: str
    theirs: str
    default: SettingValue
    offset: int = 0


class TensorMapping(NamedTuple):
    """The names of a tensor in both formats, and how the tensors differ.

    Theirs is `transposed`; ours is the `chunk` (of three) of theirs; theirs has `skip_rows` unused
    rows first; theirs has `leading_axes` of size one first.
    """

    ours: str
    theirs: str
    transposed: bool = False
    chunk: int | None = None
    skip_rows: int = 0
    leading_axes: int = 0


class ModelFormat(NamedTuple):
    """A `model_type` of theirs, and the class of ours that computes the same."""

    model: str  # our kind of model
    import_path: str  # of its class
    prefix: str  # of all names except heads; an encoder alone is often saved without it
    head_prefixes: tuple[str, ...]
    settings: tuple[SettingMapping, ...]
    fixed_settings: dict[str, SettingValue]  # settings of ours without an option of theirs
    supported_values: dict[str, tuple[SettingValue, ...]]  # by option of theirs
    tensors: tuple[TensorMapping, ...]
    tied_names: tuple[str, ...]  # copies of the word embeddings
    ignored_patterns: tuple[str, ...]  # names of tensors that are not needed
    embedding_name: str = "words.weight"
    equal_options: tuple[tuple[str, str], ...] = ()  # options of theirs that must be equal
    modality: Literal["text", "images"] = "text"


BERT = ModelFormat(
    model="bert",
    import_path="regard.models.bert:Bert",
    prefix="bert.",
    head_prefixes=("cls.",),
    settings=(
        SettingMapping("size", "vocab_size", 30522),
        SettingMapping("dim", "hidden_size", 768),
        SettingMapping("heads", "num_attention_heads", 12),
        SettingMapping("layers", "num_hidden_layers", 12),
        SettingMapping("hidden_dim", "intermediate_size", 3072),
        SettingMapping("max_positions", "max_position_embeddings", 512),
        SettingMapping("segments", "type_vocab_size", 2),
        SettingMapping("activation", "hidden_act", "gelu"),
        SettingMapping("norm_eps", "layer_norm_eps", 1e-12),
        SettingMapping("dropout", "hidden_dropout_prob", 0.1),
        SettingMapping("attention_dropout", "attention_probs_dropout_prob", 0.1),
    ),
    fixed_settings={},
    supported_values={
        "position_embedding_type": ("absolute",),
        "is_decoder": (False,),
        "add_cross_attention": (False,),
        "tie_word_embeddings": (True,),
    },
    tensors=(
        TensorMapping("words.weight", "embeddings.word_embeddings.weight"),
        TensorMapping("position.weight", "embeddings.position_embeddings.weight"),
        TensorMapping("segments.weight", "embeddings.token_type_embeddings.weight"),
        TensorMapping("norm.*", "embeddings.LayerNorm.*"),
        TensorMapping(
            "encoder.layers.{i}.self_attention.to_query.*",
            "encoder.layer.{i}.attention.self.query.*",
        ),
        TensorMapping(
            "encoder.layers.{i}.self_attention.to_key.*", "encoder.layer.{i}.attention.self.key.*"
        ),
        TensorMapping(
            "encoder.layers.{i}.self_attention.to_value.*",
            "encoder.layer.{i}.attention.self.value.*",
        ),
        TensorMapping(
            "encoder.layers.{i}.self_attention.out.*", "encoder.layer.{i}.attention.output.dense.*"
        ),
        TensorMapping(
            "encoder.layers.{i}.self_norm.*", "encoder.layer.{i}.attention.output.LayerNorm.*"
        ),
        TensorMapping("encoder.layers.{i}.feed.widen.*", "encoder.layer.{i}.intermediate.dense.*"),
        TensorMapping("encoder.layers.{i}.feed.narrow.*", "encoder.layer.{i}.output.dense.*"),
        TensorMapping("encoder.layers.{i}.feed_norm.*", "encoder.layer.{i}.output.LayerNorm.*"),
        TensorMapping("pooler.*", "pooler.dense.*"),
        TensorMapping("words.bias", "cls.predictions.bias"),
        TensorMapping("guess.*", "cls.predictions.transform.dense.*"),
        TensorMapping("guess_norm.*", "cls.predictions.transform.LayerNorm.*"),
        TensorMapping("following.*", "cls.seq_relationship.*"),
    ),
    tied_names=("cls.predictions.decoder.weight",),
    ignored_patterns=(
        "embeddings.position_ids",
        "embeddings.token_type_ids",
        "cls.predictions.decoder.bias",
    ),
)

# Positions of RoBERTa count from 2: the first two rows of the table belong to no word.
ROBERTA = BERT._replace(
    prefix="roberta.",
    head_prefixes=("lm_head.",),
    settings=tuple(
        {
            "vocab_size": SettingMapping("size", "vocab_size", 50265),
            "max_position_embeddings": SettingMapping(
                "max_positions", "max_position_embeddings", 514, offset=2
            ),
        }.get(field.theirs, field)
        for field in BERT.settings
    ),
    supported_values={**BERT.supported_values, "pad_token_id": (1,)},
    tensors=(
        *(
            name._replace(skip_rows=2) if name.ours == "position.weight" else name
            for name in BERT.tensors
            if not name.theirs.startswith("cls.")
        ),
        TensorMapping("words.bias", "lm_head.bias"),
        TensorMapping("guess.*", "lm_head.dense.*"),
        TensorMapping("guess_norm.*", "lm_head.layer_norm.*"),
    ),
    tied_names=("lm_head.decoder.weight",),
    ignored_patterns=(
        "embeddings.position_ids",
        "embeddings.token_type_ids",
        "lm_head.decoder.bias",
    ),
)

DISTILBERT = ModelFormat(
    model="bert",
    import_path="regard.models.bert:Bert",
    prefix="distilbert.",
    head_prefixes=("vocab_transform.", "vocab_layer_norm.", "vocab_projector."),
    settings=(
        SettingMapping("size", "vocab_size", 30522),
        SettingMapping("dim", "dim", 768),
        SettingMapping("heads", "n_heads", 12),
        SettingMapping("layers", "n_layers", 6),
        SettingMapping("hidden_dim", "hidden_dim", 3072),
        SettingMapping("max_positions", "max_position_embeddings", 512),
        SettingMapping("activation", "activation", "gelu"),
        SettingMapping("dropout", "dropout", 0.1),
        SettingMapping("attention_dropout", "attention_dropout", 0.1),
    ),
    fixed_settings={"segments": 0, "norm_eps": 1e-12},
    supported_values={"tie_word_embeddings": (True,)},
    tensors=(
        TensorMapping("words.weight", "embeddings.word_embeddings.weight"),
        TensorMapping("position.weight", "embeddings.position_embeddings.weight"),
        TensorMapping("norm.*", "embeddings.LayerNorm.*"),
        TensorMapping(
            "encoder.layers.{i}.self_attention.to_query.*",
            "transformer.layer.{i}.attention.q_lin.*",
        ),
        TensorMapping(
            "encoder.layers.{i}.self_attention.to_key.*", "transformer.layer.{i}.attention.k_lin.*"
        ),
        TensorMapping(
            "encoder.layers.{i}.self_attention.to_value.*",
            "transformer.layer.{i}.attention.v_lin.*",
        ),
        TensorMapping(
            "encoder.layers.{i}.self_attention.out.*", "transformer.layer.{i}.attention.out_lin.*"
        ),
        TensorMapping("encoder.layers.{i}.self_norm.*", "transformer.layer.{i}.sa_layer_norm.*"),
        TensorMapping("encoder.layers.{i}.feed.widen.*", "transformer.layer.{i}.ffn.lin1.*"),
        TensorMapping("encoder.layers.{i}.feed.narrow.*", "transformer.layer.{i}.ffn.lin2.*"),
        TensorMapping(
            "encoder.layers.{i}.feed_norm.*", "transformer.layer.{i}.output_layer_norm.*"
        ),
        TensorMapping("words.bias", "vocab_projector.bias"),
        TensorMapping("guess.*", "vocab_transform.*"),
        TensorMapping("guess_norm.*", "vocab_layer_norm.*"),
    ),
    tied_names=("vocab_projector.weight",),
    ignored_patterns=("embeddings.position_ids",),
)

GPT2 = ModelFormat(
    model="gpt2",
    import_path="regard.models.gpt2:Gpt2",
    prefix="transformer.",
    head_prefixes=("lm_head.",),
    settings=(
        SettingMapping("size", "vocab_size", 50257),
        SettingMapping("dim", "n_embd", 768),
        SettingMapping("heads", "n_head", 12),
        SettingMapping("layers", "n_layer", 12),
        SettingMapping("hidden_dim", "n_inner", None),
        SettingMapping("max_positions", "n_positions", 1024),
        SettingMapping("activation", "activation_function", "gelu_new"),
        SettingMapping("norm_eps", "layer_norm_epsilon", 1e-5),
        SettingMapping("dropout", "resid_pdrop", 0.1),
        SettingMapping("embedding_dropout", "embd_pdrop", 0.1),
        SettingMapping("attention_dropout", "attn_pdrop", 0.1),
    ),
    fixed_settings={},
    supported_values={
        "scale_attn_weights": (True,),
        "scale_attn_by_inverse_layer_idx": (False,),
        "add_cross_attention": (False,),
        "tie_word_embeddings": (True,),
    },
    tensors=(
        TensorMapping("words.weight", "wte.weight"),
        TensorMapping("position.weight", "wpe.weight"),
        TensorMapping("decoder.layers.{i}.self_norm.*", "h.{i}.ln_1.*"),
        TensorMapping(
            "decoder.layers.{i}.self_attention.to_query.*", "h.{i}.attn.c_attn.*", True, chunk=0
        ),
        TensorMapping(
            "decoder.layers.{i}.self_attention.to_key.*", "h.{i}.attn.c_attn.*", True, chunk=1
        ),
        TensorMapping(
            "decoder.layers.{i}.self_attention.to_value.*", "h.{i}.attn.c_attn.*", True, chunk=2
        ),
        TensorMapping("decoder.layers.{i}.self_attention.out.*", "h.{i}.attn.c_proj.*", True),
        TensorMapping("decoder.layers.{i}.feed_norm.*", "h.{i}.ln_2.*"),
        TensorMapping("decoder.layers.{i}.feed.widen.*", "h.{i}.mlp.c_fc.*", True),
        TensorMapping("decoder.layers.{i}.feed.narrow.*", "h.{i}.mlp.c_proj.*", True),
        TensorMapping("decoder.norm.*", "ln_f.*"),
    ),
    tied_names=("lm_head.weight",),
    ignored_patterns=("h.*.attn.bias", "h.*.attn.masked_bias"),
)

MARIAN = ModelFormat(
    model="transformer",
    import_path="regard.models.transformer:Transformer",
    prefix="model.",
    head_prefixes=("final_logits_bias", "lm_head."),
    settings=(
        SettingMapping("source_size", "vocab_size", 58101),
        SettingMapping("target_size", "decoder_vocab_size", None),
        SettingMapping("dim", "d_model", 1024),
        SettingMapping("heads", "encoder_attention_heads", 16),
        SettingMapping("layers", "encoder_layers", 12),
        SettingMapping("decoder_layers", "decoder_layers", 12),
        SettingMapping("hidden_dim", "encoder_ffn_dim", 4096),
        SettingMapping("max_positions", "max_position_embeddings", 1024),
        SettingMapping("scale_embeddings", "scale_embedding", False),
        SettingMapping("activation", "activation_function", "gelu"),
        SettingMapping("dropout", "dropout", 0.1),
        SettingMapping("attention_dropout", "attention_dropout", 0.0),
        SettingMapping("hidden_dropout", "activation_dropout", 0.0),
    ),
    fixed_settings={
        "positions": "halves",
        "output_bias": True,
        "norm": "post",
        "tie_embeddings": "all",
    },
    supported_values={
        "normalize_before": (False,),
        "normalize_embedding": (False,),
        "add_final_layer_norm": (False,),
        "static_position_embeddings": (True,),
        "share_encoder_decoder_embeddings": (True,),
        "tie_word_embeddings": (True,),
    },
    tensors=(
        TensorMapping("source_words.weight", "shared.weight"),
        *(
            TensorMapping(f"{side}.layers.{{i}}.{ours}.*", f"{side}.layers.{{i}}.{theirs}.*")
            for side in ("encoder", "decoder")
            for ours, theirs in (
                ("self_attention.to_query", "self_attn.q_proj"),
                ("self_attention.to_key", "self_attn.k_proj"),
                ("self_attention.to_value", "self_attn.v_proj"),
                ("self_attention.out", "self_attn.out_proj"),
                ("self_norm", "self_attn_layer_norm"),
                ("cross_attention.to_query", "encoder_attn.q_proj"),
                ("cross_attention.to_key", "encoder_attn.k_proj"),
                ("cross_attention.to_value", "encoder_attn.v_proj"),
                ("cross_attention.out", "encoder_attn.out_proj"),
                ("cross_norm", "encoder_attn_layer_norm"),
                ("feed.widen", "fc1"),
                ("feed.narrow", "fc2"),
                ("feed_norm", "final_layer_norm"),
            )
        ),
        TensorMapping("source_words.bias", "final_logits_bias", leading_axes=1),
    ),
    tied_names=("encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "lm_head.weight"),
    ignored_patterns=("encoder.embed_positions.weight", "decoder.embed_positions.weight"),
    embedding_name="source_words.weight",
    equal_options=(
        ("decoder_attention_heads", "encoder_attention_heads"),
        ("decoder_ffn_dim", "encoder_ffn_dim"),
    ),
)

VIT = ModelFormat(
    model="vit",
    import_path="regard.models.vit:Vit",
    prefix="vit.",
    head_prefixes=("classifier.",),
    settings=(
        SettingMapping("size", "image_size", 224),
        SettingMapping("channels", "num_channels", 3),
        SettingMapping("patch_size", "patch_size", 16),
        SettingMapping("dim", "hidden_size", 768),
        SettingMapping("heads", "num_attention_heads", 12),
        SettingMapping("layers", "num_hidden_layers", 12),
        SettingMapping("hidden_dim", "intermediate_size", 3072),
        SettingMapping("activation", "hidden_act", "gelu"),
        SettingMapping("norm_eps", "layer_norm_eps", 1e-12),
        SettingMapping("dropout", "hidden_dropout_prob", 0.0),
        SettingMapping("attention_dropout", "attention_probs_dropout_prob", 0.0),
    ),
    fixed_settings={"stem": "patch"},
    supported_values={"qkv_bias": (True,)},
    tensors=(
        TensorMapping("first", "embeddings.cls_token", leading_axes=2),
        TensorMapping("position.weight", "embeddings.position_embeddings", leading_axes=1),
        TensorMapping("stem.*", "embeddings.patch_embeddings.projection.*"),
        *(
            TensorMapping(f"encoder.layers.{{i}}.{ours}.*", f"encoder.layer.{{i}}.{theirs}.*")
            for ours, theirs in (
                ("self_attention.to_query", "attention.attention.query"),
                ("self_attention.to_key", "attention.attention.key"),
                ("self_attention.to_value", "attention.attention.value"),
                ("self_attention.out", "attention.output.dense"),
                ("self_norm", "layernorm_before"),
                ("feed.widen", "intermediate.dense"),
                ("feed.narrow", "output.dense"),
                ("feed_norm", "layernorm_after"),
            )
        ),
        TensorMapping("encoder.norm.*", "layernorm.*"),
    ),
    tied_names=(),
    ignored_patterns=("pooler.dense.*",),  # not in the paper
    embedding_name="position.weight",
    modality="images",
)

FORMATS = {  # by `model_type` of config.json
    "bert": BERT,
    "roberta": ROBERTA,
    "distilbert": DISTILBERT,
    "gpt2": GPT2,
    "marian": MARIAN,
    "vit": VIT,
}

# `architectures` of config.json, by `model_type` and pretraining heads
ARCHITECTURES = {
    ("bert", "none"): "BertModel",
    ("bert", "masked"): "BertForMaskedLM",
    ("bert", "both"): "BertForPreTraining",
    ("roberta", "none"): "RobertaModel",
    ("roberta", "masked"): "RobertaForMaskedLM",
    ("distilbert", "none"): "DistilBertModel",
    ("distilbert", "masked"): "DistilBertForMaskedLM",
    ("gpt2", "none"): "GPT2LMHeadModel",
    ("marian", "none"): "MarianMTModel",
    ("vit", "none"): "ViTModel",
}
