"""Worker of the benchmark: CTranslate2, with random weights in the shapes of the papers."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import ctranslate2
import numpy as np
from ctranslate2.specs import common_spec, transformer_spec
from loop import BASE, BERT_SIZE, GPT2_SIZE, SIZE, TARGET_LENGTH, options, serve, source_ids

Work = Callable[[], float]
RANDOM = np.random.default_rng(0)
BERT = GPT2 = {"dim": 768, "heads": 12, "layers": 12, "hidden_dim": 3072}


def array(*shape: int) -> np.ndarray:
    return (RANDOM.standard_normal(shape) * 0.02).astype(np.float32)


def fill_linear(spec: Any, rows: int, columns: int) -> None:
    spec.weight, spec.bias = array(rows, columns), array(rows)


def fill_norm(spec: Any, dim: int) -> None:
    spec.gamma, spec.beta = np.ones(dim, np.float32), np.zeros(dim, np.float32)


def fill_layers(stack: Any, sizes: dict[str, int], has_source: bool) -> None:
    dim, hidden = sizes["dim"], sizes["hidden_dim"]
    for layer in stack.layer:
        fill_linear(layer.self_attention.linear[0], 3 * dim, dim)
        fill_linear(layer.self_attention.linear[1], dim, dim)
        fill_norm(layer.self_attention.layer_norm, dim)
        if has_source:
            fill_linear(layer.attention.linear[0], dim, dim)
            fill_linear(layer.attention.linear[1], 2 * dim, dim)
            fill_linear(layer.attention.linear[2], dim, dim)
            fill_norm(layer.attention.layer_norm, dim)
        fill_linear(layer.ffn.linear_0, hidden, dim)
        fill_linear(layer.ffn.linear_1, dim, hidden)
        fill_norm(layer.ffn.layer_norm, dim)


def vocabulary(size: int) -> list[str]:
    return ["<blank>", "<s>", "</s>", "<unk>", *(f"w{number}" for number in range(4, size))]


def translator_spec() -> Any:
    spec = transformer_spec.TransformerSpec.from_config(
        (BASE["layers"], BASE["layers"]), BASE["heads"], pre_norm=False
    )
    table = array(SIZE, BASE["dim"])
    for stack in (spec.encoder, spec.decoder):
        embeddings = stack.embeddings[0] if isinstance(stack.embeddings, list) else stack.embeddings
        embeddings.weight, embeddings.multiply_by_sqrt_depth = table, True
        stack.scale_embeddings = True
        stack.position_encodings.encodings = array(512, BASE["dim"])
        fill_layers(stack, BASE, has_source=stack is spec.decoder)
    spec.decoder.projection.weight = table
    spec.register_source_vocabulary(vocabulary(SIZE))
    spec.register_target_vocabulary(vocabulary(SIZE))
    spec.config.decoder_start_token = vocabulary(4)[1]
    return spec


def gpt2_spec() -> Any:
    spec = transformer_spec.TransformerDecoderModelSpec.from_config(
        GPT2["layers"], GPT2["heads"], pre_norm=True, activation=common_spec.Activation.GELUTanh
    )
    stack = spec.decoder
    stack.scale_embeddings = False
    stack.embeddings.weight = stack.projection.weight = array(GPT2_SIZE, GPT2["dim"])
    stack.position_encodings.encodings = array(1024, GPT2["dim"])
    fill_norm(stack.layer_norm, GPT2["dim"])
    fill_layers(stack, GPT2, has_source=False)
    spec.register_vocabulary(vocabulary(GPT2_SIZE))
    return spec


def bert_spec() -> Any:
    spec = transformer_spec.TransformerEncoderModelSpec(
        transformer_spec.TransformerEncoderSpec(
            BERT["layers"],
            BERT["heads"],
            pre_norm=False,
            activation=common_spec.Activation.GELU,
            layernorm_embedding=True,
            num_source_embeddings=2,
            embeddings_merge=common_spec.EmbeddingsMerge.ADD,
        ),
        pooling_layer=True,
        pooling_activation=common_spec.Activation.Tanh,
    )
    stack = spec.encoder
    stack.scale_embeddings = False
    for embeddings, size in zip(stack.embeddings, (BERT_SIZE, 2), strict=True):
        embeddings.weight = array(size, BERT["dim"])
    stack.position_encodings.encodings = array(512, BERT["dim"])
    fill_norm(stack.layernorm_embedding, BERT["dim"])
    fill_layers(stack, BERT, has_source=False)
    fill_linear(spec.pooler_dense, BERT["dim"], BERT["dim"])
    spec.register_vocabulary(vocabulary(BERT_SIZE))
    return spec


def converted(folder: Path, build: Callable[[], Any]) -> str:
    """Return the folder of a model, which is written at its first use."""
    if not (folder / "model.bin").exists():
        spec = build()
        spec.validate()
        spec.optimize(quantization=None)
        folder.mkdir(parents=True, exist_ok=True)
        spec.save(str(folder))
    return str(folder)


def translation(given: dict[str, Any], folder: Path) -> Work:
    translator = ctranslate2.Translator(
        converted(folder / "translator", translator_spec),
        compute_type=given["precision"],
        inter_threads=given["replicas"],
        intra_threads=given["threads"],
    )
    sentences = [[f"w{number}" for number in row] for row in source_ids(given["sentences"])]

    def work() -> float:
        translator.translate_batch(
            sentences,
            max_batch_size=given["batch"],
            beam_size=given["width"],
            min_decoding_length=TARGET_LENGTH,
            max_decoding_length=TARGET_LENGTH,
        )
        return given["sentences"] * TARGET_LENGTH

    return work


def continuation(given: dict[str, Any], folder: Path) -> Work:
    generator = ctranslate2.Generator(
        converted(folder / "gpt2", gpt2_spec), inter_threads=1, intra_threads=given["threads"]
    )
    rows = source_ids(given["batch"], GPT2_SIZE, given["prompt"])
    prompts = [[f"w{number}" for number in row] for row in rows]

    def work() -> float:
        generator.generate_batch(
            prompts,
            min_length=given["prompt"] + given["tokens"],
            max_length=given["prompt"] + given["tokens"],
            sampling_topk=1,
            include_prompt_in_result=True,
        )
        return given["batch"] * given["tokens"]

    return work


def encoding(given: dict[str, Any], folder: Path) -> Work:
    encoder = ctranslate2.Encoder(
        converted(folder / "bert", bert_spec), inter_threads=1, intra_threads=given["threads"]
    )
    rows = source_ids(given["batch"], BERT_SIZE, given["length"])
    texts = [[f"w{number}" for number in row] for row in rows]

    def work() -> float:
        encoder.forward_batch(texts)
        return given["batch"]

    return work


if __name__ == "__main__":
    given, folder = options()
    builders = {"translate": translation, "continue": continuation, "encode": encoding}
    serve(builders[given["work"]](given, folder))
