"""Worker of the benchmark: plain PyTorch, as one would write these models by hand."""

from collections.abc import Callable
from typing import Any

import torch
from loop import RECURRENT, TARGET_LENGTH, TINY, TINY_SIZE, options, serve, source_ids
from torch import Tensor, nn

Work = Callable[[], float]
END = 2


class PlainTransformer(nn.Module):
    """`nn.Transformer` with tied embeddings."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(TINY_SIZE, TINY["dim"])
        self.inner = nn.Transformer(
            TINY["dim"],
            TINY["heads"],
            TINY["layers"],
            TINY["layers"],
            TINY["hidden_dim"],
            batch_first=True,
        )
        self.position = nn.Parameter(torch.randn(512, TINY["dim"]) * 0.02)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(target.shape[1])
        source_states, target_states = (
            self.words(ids) * TINY["dim"] ** 0.5 + self.position[: ids.shape[1]]
            for ids in (source, target)
        )
        states = self.inner(source_states, target_states, tgt_mask=mask, tgt_is_causal=True)
        return states @ self.words.weight.t()


class PlainRnnSearch(nn.Module):
    """Bahdanau et al. 2015 with `nn.GRU` and a loop over `nn.GRUCell`."""

    def __init__(self) -> None:
        super().__init__()
        dim, hidden = RECURRENT["dim"], RECURRENT["hidden_dim"]
        self.source_words = nn.Embedding(TINY_SIZE, dim)
        self.target_words = nn.Embedding(TINY_SIZE, dim)
        self.encoder = nn.GRU(dim, hidden, bidirectional=True, batch_first=True)
        self.first = nn.Linear(hidden, hidden)
        self.query, self.key = nn.Linear(hidden, hidden), nn.Linear(2 * hidden, hidden)
        self.energy = nn.Linear(hidden, 1, bias=False)
        self.cell = nn.GRUCell(dim + 2 * hidden, hidden)
        self.deep = nn.Linear(hidden + dim + 2 * hidden, 2 * hidden)
        self.output = nn.Linear(hidden, TINY_SIZE)

    def encode(self, source: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        states, last = self.encoder(self.source_words(source))
        return states, self.key(states), self.first(last[1]).tanh()

    def step(self, word: Tensor, s: Tensor, states: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
        energy = self.energy((self.query(s)[:, None] + keys).tanh())[..., 0]
        context = (energy.softmax(-1)[:, None] @ states)[:, 0]
        deep = self.deep(torch.cat([s, word, context], -1))
        readout = deep.unflatten(-1, (-1, 2)).amax(-1)
        return readout, self.cell(torch.cat([word, context], -1), s)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        states, keys, s = self.encode(source)
        readouts = list[Tensor]()
        for word in self.target_words(target).unbind(1):
            readout, s = self.step(word, s, states, keys)
            readouts.append(readout)
        return self.output(torch.stack(readouts, 1))


def training(model: nn.Module, given: dict[str, Any]) -> Work:
    source, target = (
        torch.tensor(source_ids(given["batch"], TINY_SIZE - shift, given["length"]))
        for shift in range(2)
    )
    optimizer = torch.optim.AdamW(model.train().parameters(), fused=True)

    def work() -> float:
        logits = model(source, target)
        nn.functional.cross_entropy(logits.flatten(0, 1), target.flatten()).backward()
        optimizer.step()
        optimizer.zero_grad()
        return given["batch"] * given["length"]

    return work


def recurrent_decoding(given: dict[str, Any]) -> Work:
    model, batch, width = PlainRnnSearch().eval(), given["batch"], given["width"]
    if given["precision"] == "int8":
        model = torch.ao.quantization.quantize_dynamic(model, {nn.Linear, nn.GRUCell})
    sources = torch.tensor(source_ids(given["sentences"], TINY_SIZE)).split(batch)

    def decode(source: Tensor) -> None:
        states, keys, s = (part.repeat_interleave(width, 0) for part in model.encode(source))
        tokens = torch.ones(batch * width, dtype=torch.long)
        scores = torch.zeros(batch, width)
        scores[:, 1:] = -torch.inf
        for _ in range(TARGET_LENGTH):
            readout, s = model.step(model.target_words(tokens), s, states, keys)
            log_probs = model.output(readout).log_softmax(-1)
            log_probs[:, END] = -torch.inf
            if width == 1:
                tokens = log_probs.argmax(-1)
                continue
            totals = (scores[..., None] + log_probs.unflatten(0, (batch, width))).flatten(1)
            scores, best = totals.topk(width)
            rows = (best // TINY_SIZE + torch.arange(batch)[:, None] * width).flatten()
            tokens, s = (best % TINY_SIZE).flatten(), s[rows]

    @torch.inference_mode()
    def work() -> float:
        for source in sources:
            decode(source)
        return given["sentences"] * TARGET_LENGTH

    return work


if __name__ == "__main__":
    torch.manual_seed(0)
    given, _ = options()
    match given["work"]:
        case "train":
            serve(training(PlainTransformer(), given))
        case "train-recurrent":
            serve(training(PlainRnnSearch(), given))
        case _:
            serve(recurrent_decoding(given))
