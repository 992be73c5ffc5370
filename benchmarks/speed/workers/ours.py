"""Worker of the benchmark: regard."""

from collections.abc import Callable
from typing import Any

import torch
from loop import (
    BASE,
    BERT_SIZE,
    GPT2_SIZE,
    RECURRENT,
    SIZE,
    TARGET_LENGTH,
    TINY,
    TINY_SIZE,
    options,
    serve,
    source_ids,
)
from torch import Tensor

from regard.attention.core import Attention
from regard.decoding.beam import beam_search
from regard.decoding.constraints import Constraints
from regard.decoding.greedy import greedy_search
from regard.decoding.prompts import ShiftedPromptStepper, prompt_state
from regard.decoding.replicas import map_in_replicas, replica_count
from regard.kernels.int8 import mark_int8
from regard.layers import prepared_stack
from regard.models.catalogue import build_model
from regard.tasks.loss import cross_entropy
from regard.training.allocation import keep_freed_memory

Work = Callable[[], float]


def translator(kind: str, sizes: dict[str, Any], size: int) -> Any:
    torch.manual_seed(0)
    return build_model(kind, {"source_size": size, "target_size": size, **sizes})


def exact_length(tokens: int) -> Constraints:
    """Return rules for outputs of so many tokens, of which the end is the last."""
    return Constraints(max_length=tokens - 1, min_length=tokens - 1)


def decoding(model: Any, size: int, given: dict[str, Any]) -> Work:
    """Return work that writes exactly 25 tokens for each sentence of 25."""
    source, batch, width = source_ids(given["sentences"], size), given["batch"], given["width"]
    batches, rules = torch.tensor(source).split(batch), exact_length(TARGET_LENGTH)

    def decode(ids: Tensor) -> None:
        memory = model.remember(ids, torch.ones_like(ids, dtype=torch.bool))
        if width == 1:
            greedy_search(model, memory, len(ids), rules)
        else:
            beam_search(model, memory, len(ids), width, constraints=rules)

    @torch.inference_mode()
    def work() -> float:
        list(map_in_replicas(decode, batches, replica_count(None)))
        return len(source) * TARGET_LENGTH

    return work


def translation(given: dict[str, Any]) -> Work:
    model = translator("transformer", {**BASE, "tie_embeddings": "all"}, SIZE).eval()
    if given["precision"] == "int8":
        mark_int8(model)
    return decoding(model, SIZE, given)


def continuation(given: dict[str, Any]) -> Work:
    torch.manual_seed(0)
    model = build_model("gpt2", {"size": GPT2_SIZE}).eval()
    prompts = torch.tensor(source_ids(given["batch"], GPT2_SIZE, given["prompt"]))
    rules = exact_length(given["tokens"])
    stepper = ShiftedPromptStepper(model, model.max_positions, GPT2_SIZE - 1)

    @torch.inference_mode()
    def work() -> float:
        greedy_search(stepper, prompt_state(prompts), given["batch"], rules)
        return given["batch"] * given["tokens"]

    return work


def encoding(given: dict[str, Any]) -> Work:
    torch.manual_seed(0)
    model = build_model("bert", {"size": BERT_SIZE}).eval()
    ids = torch.tensor(source_ids(given["batch"], BERT_SIZE, given["length"]))

    @torch.inference_mode()
    def work() -> float:
        model.encode(ids, torch.ones_like(ids, dtype=torch.bool))
        return given["batch"]

    return work


def training(model: Any, size: int, batch: int, length: int) -> Work:
    keep_freed_memory()  # as every training does
    source, target = (torch.tensor(source_ids(batch, size - shift, length)) for shift in range(2))
    valid = torch.ones_like(source, dtype=torch.bool)
    optimizer = torch.optim.AdamW(model.train().parameters(), fused=True)

    def loss() -> Tensor:
        states = model.teacher_forced(model.remember(source, valid), target)
        result = cross_entropy(model.output, states, target, valid)
        return result.total / result.count

    def work() -> float:
        loss().backward()
        optimizer.step()
        optimizer.zero_grad()
        return batch * length

    return work


def build(given: dict[str, Any]) -> Work:
    match given["work"]:
        case "translate":
            return translation(given)
        case "continue":
            return continuation(given)
        case "encode":
            return encoding(given)
        case "train":
            sizes, size = (BASE, SIZE) if given["size"] == "base" else (TINY, TINY_SIZE)
            model = translator("transformer", {**sizes, "tie_embeddings": "all"}, size)
            return training(model, size, given["batch"], given["length"])
        case "train-recurrent":
            model = translator("rnnsearch", RECURRENT, TINY_SIZE)
            return training(model, TINY_SIZE, given["batch"], given["length"])
        case "decode-recurrent":
            model = translator("rnnsearch", RECURRENT, TINY_SIZE).eval()
            if given["precision"] == "int8":
                mark_int8(model)
            return decoding(model, TINY_SIZE, given)
        case other:
            raise ValueError(other)


def remove_checks() -> None:
    """Let the attention run without looking for observers."""
    prepared_stack.is_plain_block = lambda _: True
    Attention.hook = None  # pyright: ignore[reportAttributeAccessIssue]


if __name__ == "__main__":
    given = options()[0]
    if not given.get("checks", True):
        remove_checks()
    serve(build(given))
