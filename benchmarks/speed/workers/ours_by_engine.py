"""Worker of the benchmark: `regard.load(folder, engine="auto")`, from texts to texts.

CTranslate2 has no minimum length in such a run. So the weights are such that every output has the
same length: a dimension of their own for the end of a text and for the position where it stands.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from loop import BASE, GPT2_SIZE, SIZE, TARGET_LENGTH, options, serve, source_ids
from torch import Tensor

from regard.run import Run
from regard.tasks.load import resolve_settings
from regard.text.special import END
from regard.text.train import train_tokenizer

Work = Callable[[], float]
# In the dimension of the end; the norms of six layers leave a hundredth of the first.
POSITION_STRENGTH, END_STRENGTH = 20.0, 400.0


def build_run(settings: dict[str, Any], size: int, names: tuple[str, ...]) -> Run:
    words = train_tokenizer("words", (f"w{number}" for number in range(4, size)), size)
    return Run(resolve_settings(settings), dict.fromkeys(names, words))


@torch.no_grad()
def end_at(model: Any, words: Tensor, position: int) -> None:
    """Let the model write the end of a text at this position of an output, and nowhere else."""
    words[:, 0] = model.target_position.weight[:, 0] = 0
    model.target_position.weight[position, 0], words[END, 0] = POSITION_STRENGTH, END_STRENGTH
    for block in model.decoder.layers:
        for layer in (block.self_attention.out, block.cross_attention.out, block.feed.narrow):
            layer.weight[0] = layer.bias[0] = 0


def translator(folder: Path, width: int) -> Run:
    settings = {
        "task": "translate",
        "data": {"kind": "files", "train": "pairs.tsv"},
        "text": {"kind": "words", "joint": True},
        "model": {"kind": "transformer", **BASE, "tie_embeddings": "all", "positions": "learned"},
        "decode": {"kind": "greedy", "max_length": 2 * TARGET_LENGTH},
    }
    if not (folder / "config.toml").exists():
        run = build_run(settings, SIZE, ("source", "target"))
        end_at(run.model, run.model.source_words.weight, TARGET_LENGTH)
        run.save(folder)
    run = Run.load(folder, engine="auto")
    return run if width == 1 else run.override(["decode.kind=beam", f"decode.width={width}"])


def language_model(folder: Path, tokens: int) -> Run:
    settings = {
        "task": "language",
        "data": {"kind": "text", "train": "text.txt"},
        "model": {"kind": "gpt2"},
        "decode": {"kind": "greedy", "max_length": tokens},
    }
    if not (folder / "config.toml").exists():
        build_run(settings, GPT2_SIZE, ("text",)).save(folder)
    return Run.load(folder, engine="auto").override([f"decode.max_length={tokens}"])


def prediction(run: Run, ids: list[list[int]], batch: int, length: int, prompt: int = 0) -> Work:
    """Return work that predicts from texts, so many at a time; outputs begin with their prompts."""
    texts = [" ".join(f"w{number}" for number in row) for row in ids]

    def work() -> float:
        for start in range(0, len(texts), batch):
            for output in run.predict(texts[start : start + batch]):
                if (written := len(output.text.split()) - prompt) != length:
                    raise RuntimeError(f"an output has {written} words, not {length}")
        return len(texts) * length

    return work


def build(given: dict[str, Any], folder: Path) -> Work:
    if given["work"] == "translate":
        run = translator(folder / "translator-run", given["width"])
        if given["precision"] == "int8":
            run.quantize()
        # Several texts are one call, which has its own batches; else each text is a call.
        batch = 1 if given["batch"] == 1 else given["sentences"]
        return prediction(run, source_ids(given["sentences"]), batch, TARGET_LENGTH)
    run = language_model(folder / "gpt2-run", given["tokens"])
    prompts = source_ids(given["batch"], GPT2_SIZE, given["prompt"])
    return prediction(run, prompts, given["batch"], given["tokens"], given["prompt"])


if __name__ == "__main__":
    serve(build(*options()))
