"""Worker of the benchmark: JoeyNMT 2.3, its recurrent model with the sizes of RNNsearch.

Its decoder has input feeding, which the paper's has not. All sentences are equally long.
"""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch
from joeynmt.model import build_model
from joeynmt.search import beam_search, greedy
from joeynmt.vocabulary import Vocabulary
from loop import RECURRENT, TARGET_LENGTH, TINY_SIZE, options, serve, source_ids
from torch import Tensor

Work = Callable[[], float]
SPECIAL = {"unk": "<unk>", "pad": "<pad>", "bos": "<s>", "eos": "</s>"}


def build_vocabulary() -> Any:
    tokens = {f"{name}_token": token for name, token in SPECIAL.items()}
    ids = {f"{name}_id": index for index, name in enumerate(SPECIAL)}
    settings = SimpleNamespace(**tokens, **ids, sep_token=None, sep_id=None, lang_tags=[])
    return Vocabulary([f"word{n}" for n in range(TINY_SIZE - len(SPECIAL))], settings)


def build() -> Any:
    part = {
        "type": "recurrent",
        "rnn_type": "gru",
        "embeddings": {"embedding_dim": RECURRENT["dim"], "dropout": 0.0},
        "hidden_size": RECURRENT["hidden_dim"],
        "num_layers": 1,
        "dropout": 0.0,
    }
    vocabulary = build_vocabulary()
    return build_model(
        {
            "encoder": {**part, "bidirectional": True},
            "decoder": {**part, "attention": "bahdanau", "init_hidden": "bridge"},
        },
        vocabulary,
        vocabulary,
    )


def source_arguments(ids: Tensor) -> dict[str, Tensor]:
    lengths = torch.full((len(ids),), ids.shape[1])
    return {"src": ids, "src_length": lengths, "src_mask": torch.ones_like(ids).bool()[:, None]}


def training(given: dict[str, Any]) -> Work:
    model = build().train()
    model.loss_function = ("crossentropy", 0.0)
    source, target = (
        torch.tensor(source_ids(given["batch"], TINY_SIZE - shift, given["length"]))
        for shift in range(2)
    )
    mask = torch.ones_like(target).bool()[:, None]
    arguments = {**source_arguments(source), "trg": target, "trg_input": target, "trg_mask": mask}
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)

    def work() -> float:
        loss, *_ = model(return_type="loss", **arguments)
        (loss / target.numel()).backward()
        optimizer.step()
        optimizer.zero_grad()
        return target.numel()

    return work


def decoding(given: dict[str, Any]) -> Work:
    model, width = build().eval(), given["width"]
    ids = torch.tensor(source_ids(given["sentences"], TINY_SIZE))
    sources = [source_arguments(part) for part in ids.split(given["batch"])]

    def decode(source: dict[str, Tensor]) -> None:
        states, last, *_ = model(return_type="encode", **source)
        arguments = {
            "src_mask": source["src_mask"],
            "max_output_length": TARGET_LENGTH,
            "min_output_length": TARGET_LENGTH,
            "model": model,
            "encoder_output": states,
            "encoder_hidden": last,
        }
        if width == 1:
            greedy(**arguments)
        else:
            beam_search(**arguments, beam_size=width, alpha=0.0)

    @torch.no_grad()
    def work() -> float:
        for source in sources:
            decode(source)
        return len(ids) * TARGET_LENGTH

    return work


if __name__ == "__main__":
    torch.manual_seed(0)
    given, _ = options()
    serve(training(given) if given["work"] == "train-recurrent" else decoding(given))
