"""What maps where: Hugging Face's names for settings and weights, beside ours. Tables only.

In names, {i} is the number of a layer and * stands for `weight` and `bias`.
"""

from typing import Any, Literal, NamedTuple

ACTIVATIONS = {  # theirs: ours
    "gelu": "gelu",
    "gelu_new": "tanh_gelu",
    "gelu_pytorch_tanh": "tanh_gelu",
    "relu": "relu",
    "silu": "swish",
    "swish": "swish",
    "tanh": "tanh",
}


class Field(NamedTuple):
    """A setting of ours, theirs of the same meaning, and what theirs is when it is not there.

    Theirs is larger by `more`.
    """

    ours: str
    theirs: str
    default: Any
    more: int = 0


class Name(NamedTuple):
    """A tensor of ours and theirs.

    They keep a `turned` matrix transposed; a `part` is a third of their tensor; the first `skip`
    rows of theirs are nobody's; theirs has `lead` axes of one before ours.
    """

    ours: str
    theirs: str
    turned: bool = False
    part: int | None = None
    skip: int = 0
    lead: int = 0


class Format(NamedTuple):
    """One `model_type` of theirs, and the class of ours that computes the same."""

    model: str  # our kind of model, and where its class is
    place: str
    prefix: str  # of all names but the `heads`; a bare encoder is often saved without it
    heads: tuple[str, ...]
    fields: tuple[Field, ...]
    fixed: dict[str, Any]  # settings of ours that this format has no name for
    only: dict[str, tuple[Any, ...]]  # options of theirs, with the values that we compute
    names: tuple[Name, ...]
    tied: tuple[str, ...]  # copies of the table of words
    ignored: tuple[str, ...]  # what can be computed: patterns of names
    words: str = "words.weight"
    same: tuple[tuple[str, str], ...] = ()  # options of theirs that must be equal
    reads: Literal["text", "pictures"] = "text"


BERT = Format(
    model="bert",
    place="regard.models.bert:Bert",
    prefix="bert.",
    heads=("cls.",),
    fields=(
        Field("size", "vocab_size", 30522),
        Field("dim", "hidden_size", 768),
        Field("heads", "num_attention_heads", 12),
        Field("layers", "num_hidden_layers", 12),
        Field("hidden_dim", "intermediate_size", 3072),
        Field("context", "max_position_embeddings", 512),
        Field("segments", "type_vocab_size", 2),
        Field("activation", "hidden_act", "gelu"),
        Field("norm_eps", "layer_norm_eps", 1e-12),
        Field("dropout", "hidden_dropout_prob", 0.1),
        Field("attention_dropout", "attention_probs_dropout_prob", 0.1),
    ),
    fixed={},
    only={
        "position_embedding_type": ("absolute",),
        "is_decoder": (False,),
        "add_cross_attention": (False,),
        "tie_word_embeddings": (True,),
    },
    names=(
        Name("words.weight", "embeddings.word_embeddings.weight"),
        Name("position.weight", "embeddings.position_embeddings.weight"),
        Name("segments.weight", "embeddings.token_type_embeddings.weight"),
        Name("norm.*", "embeddings.LayerNorm.*"),
        Name(
            "encoder.layers.{i}.self_attention.to_query.*",
            "encoder.layer.{i}.attention.self.query.*",
        ),
        Name(
            "encoder.layers.{i}.self_attention.to_key.*", "encoder.layer.{i}.attention.self.key.*"
        ),
        Name(
            "encoder.layers.{i}.self_attention.to_value.*",
            "encoder.layer.{i}.attention.self.value.*",
        ),
        Name(
            "encoder.layers.{i}.self_attention.out.*", "encoder.layer.{i}.attention.output.dense.*"
        ),
        Name("encoder.layers.{i}.self_norm.*", "encoder.layer.{i}.attention.output.LayerNorm.*"),
        Name("encoder.layers.{i}.feed.widen.*", "encoder.layer.{i}.intermediate.dense.*"),
        Name("encoder.layers.{i}.feed.narrow.*", "encoder.layer.{i}.output.dense.*"),
        Name("encoder.layers.{i}.feed_norm.*", "encoder.layer.{i}.output.LayerNorm.*"),
        Name("pooler.*", "pooler.dense.*"),
        Name("words.bias", "cls.predictions.bias"),
        Name("guess.*", "cls.predictions.transform.dense.*"),
        Name("guess_norm.*", "cls.predictions.transform.LayerNorm.*"),
        Name("following.*", "cls.seq_relationship.*"),
    ),
    tied=("cls.predictions.decoder.weight",),
    ignored=(
        "embeddings.position_ids",
        "embeddings.token_type_ids",
        "cls.predictions.decoder.bias",
    ),
)

# Its positions count from 2: their table has two rows more, of which none is a position of a word.
ROBERTA = BERT._replace(
    prefix="roberta.",
    heads=("lm_head.",),
    fields=tuple(
        {
            "vocab_size": Field("size", "vocab_size", 50265),
            "max_position_embeddings": Field("context", "max_position_embeddings", 514, more=2),
        }.get(field.theirs, field)
        for field in BERT.fields
    ),
    only={**BERT.only, "pad_token_id": (1,)},
    names=(
        *(
            name._replace(skip=2) if name.ours == "position.weight" else name
            for name in BERT.names
            if not name.theirs.startswith("cls.")
        ),
        Name("words.bias", "lm_head.bias"),
        Name("guess.*", "lm_head.dense.*"),
        Name("guess_norm.*", "lm_head.layer_norm.*"),
    ),
    tied=("lm_head.decoder.weight",),
    ignored=("embeddings.position_ids", "embeddings.token_type_ids", "lm_head.decoder.bias"),
)

DISTILBERT = Format(
    model="bert",
    place="regard.models.bert:Bert",
    prefix="distilbert.",
    heads=("vocab_transform.", "vocab_layer_norm.", "vocab_projector."),
    fields=(
        Field("size", "vocab_size", 30522),
        Field("dim", "dim", 768),
        Field("heads", "n_heads", 12),
        Field("layers", "n_layers", 6),
        Field("hidden_dim", "hidden_dim", 3072),
        Field("context", "max_position_embeddings", 512),
        Field("activation", "activation", "gelu"),
        Field("dropout", "dropout", 0.1),
        Field("attention_dropout", "attention_dropout", 0.1),
    ),
    fixed={"segments": 0, "norm_eps": 1e-12},
    only={"tie_word_embeddings": (True,)},
    names=(
        Name("words.weight", "embeddings.word_embeddings.weight"),
        Name("position.weight", "embeddings.position_embeddings.weight"),
        Name("norm.*", "embeddings.LayerNorm.*"),
        Name(
            "encoder.layers.{i}.self_attention.to_query.*",
            "transformer.layer.{i}.attention.q_lin.*",
        ),
        Name(
            "encoder.layers.{i}.self_attention.to_key.*", "transformer.layer.{i}.attention.k_lin.*"
        ),
        Name(
            "encoder.layers.{i}.self_attention.to_value.*",
            "transformer.layer.{i}.attention.v_lin.*",
        ),
        Name(
            "encoder.layers.{i}.self_attention.out.*", "transformer.layer.{i}.attention.out_lin.*"
        ),
        Name("encoder.layers.{i}.self_norm.*", "transformer.layer.{i}.sa_layer_norm.*"),
        Name("encoder.layers.{i}.feed.widen.*", "transformer.layer.{i}.ffn.lin1.*"),
        Name("encoder.layers.{i}.feed.narrow.*", "transformer.layer.{i}.ffn.lin2.*"),
        Name("encoder.layers.{i}.feed_norm.*", "transformer.layer.{i}.output_layer_norm.*"),
        Name("words.bias", "vocab_projector.bias"),
        Name("guess.*", "vocab_transform.*"),
        Name("guess_norm.*", "vocab_layer_norm.*"),
    ),
    tied=("vocab_projector.weight",),
    ignored=("embeddings.position_ids",),
)

GPT2 = Format(
    model="gpt2",
    place="regard.models.gpt2:Gpt2",
    prefix="transformer.",
    heads=("lm_head.",),
    fields=(
        Field("size", "vocab_size", 50257),
        Field("dim", "n_embd", 768),
        Field("heads", "n_head", 12),
        Field("layers", "n_layer", 12),
        Field("hidden_dim", "n_inner", None),
        Field("context", "n_positions", 1024),
        Field("activation", "activation_function", "gelu_new"),
        Field("norm_eps", "layer_norm_epsilon", 1e-5),
        Field("dropout", "resid_pdrop", 0.1),
        Field("embedding_dropout", "embd_pdrop", 0.1),
        Field("attention_dropout", "attn_pdrop", 0.1),
    ),
    fixed={},
    only={
        "scale_attn_weights": (True,),
        "scale_attn_by_inverse_layer_idx": (False,),
        "add_cross_attention": (False,),
        "tie_word_embeddings": (True,),
    },
    names=(
        Name("words.weight", "wte.weight"),
        Name("position.weight", "wpe.weight"),
        Name("decoder.layers.{i}.self_norm.*", "h.{i}.ln_1.*"),
        Name("decoder.layers.{i}.self_attention.to_query.*", "h.{i}.attn.c_attn.*", True, part=0),
        Name("decoder.layers.{i}.self_attention.to_key.*", "h.{i}.attn.c_attn.*", True, part=1),
        Name("decoder.layers.{i}.self_attention.to_value.*", "h.{i}.attn.c_attn.*", True, part=2),
        Name("decoder.layers.{i}.self_attention.out.*", "h.{i}.attn.c_proj.*", True),
        Name("decoder.layers.{i}.feed_norm.*", "h.{i}.ln_2.*"),
        Name("decoder.layers.{i}.feed.widen.*", "h.{i}.mlp.c_fc.*", True),
        Name("decoder.layers.{i}.feed.narrow.*", "h.{i}.mlp.c_proj.*", True),
        Name("decoder.norm.*", "ln_f.*"),
    ),
    tied=("lm_head.weight",),
    ignored=("h.*.attn.bias", "h.*.attn.masked_bias"),
)

MARIAN = Format(
    model="transformer",
    place="regard.models.transformer:Transformer",
    prefix="model.",
    heads=("final_logits_bias", "lm_head."),
    fields=(
        Field("source_size", "vocab_size", 58101),
        Field("target_size", "decoder_vocab_size", None),
        Field("dim", "d_model", 1024),
        Field("heads", "encoder_attention_heads", 16),
        Field("layers", "encoder_layers", 12),
        Field("decoder_layers", "decoder_layers", 12),
        Field("hidden_dim", "encoder_ffn_dim", 4096),
        Field("longest", "max_position_embeddings", 1024),
        Field("scaled", "scale_embedding", False),
        Field("activation", "activation_function", "gelu"),
        Field("dropout", "dropout", 0.1),
        Field("attention_dropout", "attention_dropout", 0.0),
        Field("hidden_dropout", "activation_dropout", 0.0),
    ),
    fixed={"positions": "halves", "output_bias": True, "norm": "post", "shared": "all"},
    only={
        "normalize_before": (False,),
        "normalize_embedding": (False,),
        "add_final_layer_norm": (False,),
        "static_position_embeddings": (True,),
        "share_encoder_decoder_embeddings": (True,),
        "tie_word_embeddings": (True,),
    },
    names=(
        Name("source_words.weight", "shared.weight"),
        *(
            Name(f"{side}.layers.{{i}}.{ours}.*", f"{side}.layers.{{i}}.{theirs}.*")
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
        Name("source_words.bias", "final_logits_bias", lead=1),
    ),
    tied=("encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "lm_head.weight"),
    ignored=("encoder.embed_positions.weight", "decoder.embed_positions.weight"),
    words="source_words.weight",
    same=(
        ("decoder_attention_heads", "encoder_attention_heads"),
        ("decoder_ffn_dim", "encoder_ffn_dim"),
    ),
)

VIT = Format(
    model="vit",
    place="regard.models.vit:Vit",
    prefix="vit.",
    heads=("classifier.",),
    fields=(
        Field("size", "image_size", 224),
        Field("channels", "num_channels", 3),
        Field("patch", "patch_size", 16),
        Field("dim", "hidden_size", 768),
        Field("heads", "num_attention_heads", 12),
        Field("layers", "num_hidden_layers", 12),
        Field("hidden_dim", "intermediate_size", 3072),
        Field("activation", "hidden_act", "gelu"),
        Field("norm_eps", "layer_norm_eps", 1e-12),
        Field("dropout", "hidden_dropout_prob", 0.0),
        Field("attention_dropout", "attention_probs_dropout_prob", 0.0),
    ),
    fixed={"stem": "patch"},
    only={"qkv_bias": (True,)},
    names=(
        Name("first", "embeddings.cls_token", lead=2),
        Name("position.weight", "embeddings.position_embeddings", lead=1),
        Name("stem.*", "embeddings.patch_embeddings.projection.*"),
        *(
            Name(f"encoder.layers.{{i}}.{ours}.*", f"encoder.layer.{{i}}.{theirs}.*")
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
        Name("encoder.norm.*", "layernorm.*"),
    ),
    tied=(),
    ignored=("pooler.dense.*",),  # which the paper has not
    words="position.weight",
    reads="pictures",
)

FORMATS = {  # by `model_type` of config.json
    "bert": BERT,
    "roberta": ROBERTA,
    "distilbert": DISTILBERT,
    "gpt2": GPT2,
    "marian": MARIAN,
    "vit": VIT,
}

# What `architectures` of config.json says of a model with these heads
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
