"""Worker of the benchmark: Hugging Face transformers."""

from collections.abc import Callable
from typing import Any

import torch
import transformers
from loop import BASE, SIZE, TARGET_LENGTH, TINY, TINY_SIZE, options, serve, source_ids

Work = Callable[[], float]


def marian(sizes: dict[str, int], size: int) -> Any:
    torch.manual_seed(0)
    config = transformers.MarianConfig(
        vocab_size=size,
        d_model=sizes["dim"],
        encoder_layers=sizes["layers"],
        decoder_layers=sizes["layers"],
        encoder_attention_heads=sizes["heads"],
        decoder_attention_heads=sizes["heads"],
        encoder_ffn_dim=sizes["hidden_dim"],
        decoder_ffn_dim=sizes["hidden_dim"],
        activation_function="relu",
        scale_embedding=True,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        forced_eos_token_id=None,
        decoder_start_token_id=1,
        dropout=0.1,
        max_position_embeddings=512,
    )
    return transformers.MarianMTModel(config)


def translation(given: dict[str, Any]) -> Work:
    model = marian(BASE, SIZE).eval()
    source = torch.tensor(source_ids(given["sentences"]))

    @torch.inference_mode()
    def work() -> float:
        for ids in source.split(given["batch"]):
            model.generate(
                input_ids=ids,
                attention_mask=torch.ones_like(ids),
                num_beams=given["width"],
                do_sample=False,
                min_new_tokens=TARGET_LENGTH,
                max_new_tokens=TARGET_LENGTH,
            )
        return given["sentences"] * TARGET_LENGTH

    return work


def continuation(given: dict[str, Any]) -> Work:
    torch.manual_seed(0)
    config = transformers.GPT2Config()
    model = transformers.GPT2LMHeadModel(config).eval()
    prompts = torch.tensor(source_ids(given["batch"], config.vocab_size, given["prompt"]))

    @torch.inference_mode()
    def work() -> float:
        model.generate(
            prompts,
            attention_mask=torch.ones_like(prompts),
            do_sample=False,
            min_new_tokens=given["tokens"],
            max_new_tokens=given["tokens"],
            pad_token_id=config.eos_token_id,
        )
        return given["batch"] * given["tokens"]

    return work


def encoding(given: dict[str, Any]) -> Work:
    torch.manual_seed(0)
    config = transformers.BertConfig()
    model = transformers.BertModel(config).eval()
    ids = torch.tensor(source_ids(given["batch"], config.vocab_size, given["length"]))

    @torch.inference_mode()
    def work() -> float:
        model(ids, attention_mask=torch.ones_like(ids))
        return given["batch"]

    return work


def training(given: dict[str, Any]) -> Work:
    sizes, size = (BASE, SIZE) if given["size"] == "base" else (TINY, TINY_SIZE)
    model = marian(sizes, size).train()
    source, target = (
        torch.tensor(source_ids(given["batch"], size - shift, given["length"]))
        for shift in range(2)
    )
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)

    def work() -> float:
        model(input_ids=source, labels=target).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return given["batch"] * given["length"]

    return work


if __name__ == "__main__":
    given, _ = options()
    transformers.logging.set_verbosity_error()
    builders = {"translate": translation, "continue": continuation, "encode": encoding}
    serve({**builders, "train": training}[given["work"]](given))
