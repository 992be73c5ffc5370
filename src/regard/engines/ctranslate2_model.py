"""Write a model as a folder of CTranslate2: transformer, gpt2 or bert.

    model.bin   config.json   shared_vocabulary.json, or one for each side

CTranslate2 joins query, key and value in one matrix; all other weights are copied.
"""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.attention.core import Attention
from regard.attention.normalizers import softmax
from regard.attention.scores import ScaledDot
from regard.engines.ctranslate2_check import check_ctranslate2_model
from regard.errors import InputError
from regard.files import draft_path, explain_write_errors
from regard.layers.activations import ActivationFunction, tanh_gelu
from regard.layers.embedding import Embedding
from regard.layers.positions import LearnedPositions
from regard.layers.transformer_block import TransformerBlock, TransformerStack
from regard.models.bert import Bert
from regard.models.gpt2 import Gpt2
from regard.models.transformer import Transformer

SupportedModel = Transformer | Gpt2 | Bert
EngineObject = Any  # an object of CTranslate2, which has no types
MAX_SINUSOIDS = 2048  # positions of a table that has no limit of its own
ACTIVATIONS: Mapping[ActivationFunction, str] = {
    F.relu: "RELU",
    F.gelu: "GELU",
    tanh_gelu: "GELUTanh",
    F.silu: "SWISH",
    torch.tanh: "Tanh",
}


class SpecialTokens(NamedTuple):
    """The tokens that begin and end an output, and that of unknown words."""

    start: str
    end: str
    unknown: str


def supported_model(model: object) -> SupportedModel:
    """Return the model itself; InputError says why CTranslate2 cannot run it."""
    if not isinstance(model, Transformer | Gpt2 | Bert):
        raise InputError(f"model {type(model).__name__} is not a transformer, gpt2 or bert")
    for name, module in model.named_modules():
        if isinstance(module, Attention) and not (
            type(module.score) is ScaledDot
            and module.normalize is softmax
            and module.window is None
        ):
            raise InputError(f"{name} is not a softmax over scaled dot products")
    return model


def write_ctranslate2_model(
    path: Path | str,
    model: SupportedModel,
    vocabularies: Sequence[Sequence[str]],
    special: SpecialTokens,
    *,
    int8: bool = False,
) -> None:
    """Write a new folder, completely or not at all.

    `vocabularies` has the tokens of source and target, or of the one text. The numbers of the model
    are compared before its weights are rounded to 8 bits.
    """
    folder = Path(path)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder}: exists already; name a new or an empty folder")
    for tokens in vocabularies:
        check_unique(tokens)
    spec = build_spec(model, vocabularies, special)
    folder.parent.mkdir(parents=True, exist_ok=True)
    draft = draft_path(folder)
    try:
        with explain_write_errors(folder):
            draft.mkdir()
            save_spec(spec, draft)
            check_ctranslate2_model(draft, model, vocabularies)
            if int8:
                save_spec(build_spec(model, vocabularies, special), draft, "int8")
            if folder.exists():
                folder.rmdir()
            draft.rename(folder)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def save_spec(spec: EngineObject, folder: Path, quantization: str | None = None) -> None:
    spec.validate()
    spec.optimize(quantization=quantization)
    spec.save(str(folder))


def check_unique(tokens: Sequence[str]) -> None:
    """Refuse a vocabulary in which two ids have one token: CTranslate2 reads tokens."""
    if len(set(tokens)) < len(tokens):
        duplicate = next(token for token in tokens if tokens.count(token) > 1)
        raise InputError(f"two ids of the vocabulary have the token {duplicate!r}")


def build_spec(
    model: SupportedModel, vocabularies: Sequence[Sequence[str]], special: SpecialTokens
) -> EngineObject:
    """Return the model as a specification of CTranslate2, with its vocabulary."""
    match model:
        case Transformer():
            spec = transformer_spec(model)
            source, target = vocabularies
            spec.register_source_vocabulary(list(source))
            spec.register_target_vocabulary(list(target))
            spec.config.decoder_start_token = special.start
            spec.config.add_source_eos = True
        case Gpt2():
            spec = gpt2_spec(model)
            spec.register_vocabulary(list(vocabularies[0]))
        case Bert():
            spec = bert_spec(model)
            spec.register_vocabulary(list(vocabularies[0]))
    spec.config.bos_token, spec.config.eos_token = special.start, special.end
    spec.config.unk_token = special.unknown
    return spec


def transformer_spec(model: Transformer) -> EngineObject:
    from ctranslate2.specs.transformer_spec import TransformerSpec

    first = first_block(model.encoder)
    spec: EngineObject = TransformerSpec.from_config(
        (len(model.encoder.layers), len(model.decoder.layers)),
        first.self_attention.heads,
        pre_norm=first.is_pre_norm,
        activation=activation_spec(first),
    )
    spec.config.layer_norm_epsilon = first.self_norm.eps
    fill_words(spec.encoder.embeddings[0], model.source_words)
    fill_words(spec.decoder.embeddings, model.table)
    for stack, ours, words, positions in (
        (spec.encoder, model.encoder, model.source_words, model.source_position),
        (spec.decoder, model.decoder, model.table, model.target_position),
    ):
        stack.scale_embeddings = words.scale != 1.0
        stack.position_encodings.encodings = to_array(position_table(positions, ours))
        fill_stack(stack, ours)
    fill_output(spec.decoder.projection, model.output)
    return spec


def gpt2_spec(model: Gpt2) -> EngineObject:
    from ctranslate2.specs.transformer_spec import TransformerDecoderModelSpec

    first = first_block(model.decoder)
    spec: EngineObject = TransformerDecoderModelSpec.from_config(
        len(model.decoder.layers),
        first.self_attention.heads,
        pre_norm=True,
        activation=activation_spec(first),
    )
    spec.config.layer_norm_epsilon = first.self_norm.eps
    stack = spec.decoder
    stack.scale_embeddings = False
    fill_words(stack.embeddings, model.words)
    stack.position_encodings.encodings = to_array(model.position.weight)
    fill_stack(stack, model.decoder)
    fill_output(stack.projection, model.words)
    return spec


def bert_spec(model: Bert) -> EngineObject:
    from ctranslate2.specs.common_spec import Activation, EmbeddingsMerge
    from ctranslate2.specs.transformer_spec import (
        TransformerEncoderModelSpec,
        TransformerEncoderSpec,
    )

    first = first_block(model.encoder)
    tables = [model.words.weight, *([] if model.segments is None else [model.segments.weight])]
    spec: EngineObject = TransformerEncoderModelSpec(
        TransformerEncoderSpec(
            len(model.encoder.layers),
            first.self_attention.heads,
            pre_norm=False,
            activation=activation_spec(first),
            layernorm_embedding=True,
            num_source_embeddings=len(tables),
            embeddings_merge=EmbeddingsMerge.ADD,
        ),
        pooling_layer=model.pooler is not None,
        pooling_activation=Activation.Tanh,
    )
    spec.config.layer_norm_epsilon = first.self_norm.eps
    stack = spec.encoder
    stack.scale_embeddings = False
    for embeddings, table in zip(stack.embeddings, tables, strict=True):
        embeddings.weight = to_array(table)
    stack.position_encodings.encodings = to_array(model.position.weight)
    fill_norm(stack.layernorm_embedding, model.norm)
    fill_stack(stack, model.encoder)
    if model.pooler is not None:
        fill_linear(spec.pooler_dense, [model.pooler])
    return spec


def first_block(stack: TransformerStack) -> TransformerBlock:
    return cast("TransformerBlock", stack.layers[0])


def activation_spec(block: TransformerBlock) -> EngineObject:
    from ctranslate2.specs.common_spec import Activation

    return Activation[ACTIVATIONS[block.feed.activation]]


def position_table(positions: nn.Module, stack: TransformerStack) -> Tensor:
    """Return the vectors of all positions that CTranslate2 will know."""
    if isinstance(positions, LearnedPositions):
        return positions.weight
    dim = first_block(stack).dim
    return positions(torch.zeros(1, MAX_SINUSOIDS, dim))[0]


def table_rows(positions: nn.Module) -> int:
    """Return the number of positions that CTranslate2 will know."""
    is_learned = isinstance(positions, LearnedPositions)
    return len(positions.weight) if is_learned else MAX_SINUSOIDS


def fill_stack(spec: EngineObject, stack: TransformerStack) -> None:
    if stack.norm is not None:
        fill_norm(spec.layer_norm, stack.norm)
    for layer, block in zip(spec.layer, cast("list[TransformerBlock]", stack.layers), strict=True):
        heads = block.self_attention
        fill_linear(layer.self_attention.linear[0], [heads.to_query, heads.to_key, heads.to_value])
        fill_linear(layer.self_attention.linear[1], [heads.out])
        fill_norm(layer.self_attention.layer_norm, block.self_norm)
        if block.cross_attention is not None and block.cross_norm is not None:
            heads = block.cross_attention
            fill_linear(layer.attention.linear[0], [heads.to_query])
            fill_linear(layer.attention.linear[1], [heads.to_key, heads.to_value])
            fill_linear(layer.attention.linear[2], [heads.out])
            fill_norm(layer.attention.layer_norm, block.cross_norm)
        fill_linear(layer.ffn.linear_0, [block.feed.widen])
        fill_linear(layer.ffn.linear_1, [block.feed.narrow])
        fill_norm(layer.ffn.layer_norm, block.feed_norm)


def fill_words(spec: EngineObject, words: Embedding) -> None:
    spec.weight = to_array(words.weight)


def fill_output(spec: EngineObject, output: nn.Linear | Embedding) -> None:
    spec.weight = to_array(output.weight)
    if output.bias is not None:
        spec.bias = to_array(output.bias)


def fill_linear(spec: EngineObject, layers: Sequence[nn.Linear]) -> None:
    """Set one matrix, made of the rows of all layers."""
    spec.weight = to_array(torch.cat([layer.weight for layer in layers]))
    spec.bias = to_array(torch.cat([layer.bias for layer in layers]))


def fill_norm(spec: EngineObject, norm: nn.LayerNorm) -> None:
    spec.gamma, spec.beta = to_array(norm.weight), to_array(norm.bias)


def to_array(tensor: Tensor) -> EngineObject:
    return tensor.detach().to("cpu", torch.float32).contiguous().numpy()
