"""Does HAN find the one word that tells the class of a document? Attention against means.

    python benchmarks/planted.py [--models attention mean birnn] [--epochs 5] [--seed 1]

Documents are of about 20 sentences; the paper's sizes (Yang et al. 2016) but for word vectors of
100. Prints for each model: accuracy on unseen documents, the share of the attention that was on the
planted word (of words in its sentence, of its sentence, of both), and the CPU seconds of training
on one thread.
"""

import argparse
import time
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.attention.observe import observe
from regard.data.corpus import Record
from regard.data.synthetic.planted import PlantedWords
from regard.layers.output_heads import ClassifierHead
from regard.models.birnn import BiRnn
from regard.models.han import Han, scatter_rows

BATCH = 32


def vocabulary(records: Sequence[Record]) -> dict[str, int]:
    words = sorted({word for record in records for word in record["text"].split()})
    return {word: number for number, word in enumerate(words, 1)}


def collate(records: Sequence[Record], ids: dict[str, int]) -> Tensor:
    """[documents, sentences, words], 0 where nothing is."""
    texts = [[line.split() for line in record["text"].split("\n")] for record in records]
    sentences = max(len(text) for text in texts)
    words = max(len(line) for text in texts for line in text)
    rows = torch.zeros(len(texts), sentences, words, dtype=torch.int64)
    for row, text in zip(rows, texts, strict=True):
        for place, line in enumerate(text):
            row[place, : len(line)] = torch.tensor([ids[word] for word in line])
    return rows


def flat(ids: Tensor) -> Tensor:
    """Documents as one row of words each."""
    rows = [row[row > 0] for row in ids]
    return nn.utils.rnn.pad_sequence(rows, batch_first=True)


def pooled(model: Han | BiRnn, ids: Tensor) -> Tensor:
    if isinstance(model, BiRnn):
        ids = flat(ids)
    vector = model.encode(ids, ids > 0).pooled
    assert vector is not None  # noqa: S101 (for the type checker)
    return vector


def train(
    model: Han | BiRnn,
    head: ClassifierHead,
    ids: Sequence[Tensor],
    labels: Sequence[Tensor],
    epochs: int,
) -> None:
    weights = [*model.parameters(), *head.parameters()]
    optimiser = torch.optim.Adam(weights, lr=2e-3)
    steps = epochs * len(ids)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 2e-3, total_steps=steps + 1)
    for _ in range(epochs):
        for number in torch.randperm(len(ids)).tolist():
            loss = F.cross_entropy(head(pooled(model, ids[number])), labels[number])
            optimiser.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(weights, 1.0)
            optimiser.step()
            schedule.step()


@torch.no_grad()
def masses(model: Han, ids: Tensor, records: Sequence[Record]) -> Tensor:
    """Weight of the planted word in its sentence, and of its sentence, for each document."""
    valid = ids > 0
    with observe(model) as seen:
        model.encode(ids, valid)
    words = scatter_rows(seen.joined()["word_attention"], valid.any(-1))[:, :, 0]
    sentences = seen.joined()["sentence_attention"][:, 0]
    places = torch.tensor([(record["sentence"], record["word"]) for record in records]).T
    row = torch.arange(len(records))
    return torch.stack([words[row, places[0], places[1]], sentences[row, places[0]]], -1)


def row(kind: str, corpus: PlantedWords, epochs: int, seed: int) -> str:
    torch.manual_seed(seed)
    made, unseen = list(corpus.read("train")), list(corpus.read("test"))
    ids, classes = vocabulary(made + unseen), sorted(corpus.keys)
    model: Han | BiRnn
    if kind == "birnn":
        model = BiRnn(len(ids) + 1, dim=100, hidden_dim=50, cell="gru", pooling="last")
    else:
        model = Han(len(ids) + 1, dim=100, pooling="mean" if kind == "mean" else "attention")
    head = ClassifierHead(model.pooled_width, len(classes))

    def batches(records: Sequence[Record]) -> list[tuple[Tensor, Tensor, list[Record]]]:
        parts = [list(records[start : start + BATCH]) for start in range(0, len(records), BATCH)]
        return [
            (collate(some, ids), torch.tensor([classes.index(r["label"]) for r in some]), some)
            for some in parts
        ]

    given = batches(made)
    start = time.process_time()
    train(model.train(), head.train(), [x for x, _, _ in given], [y for _, y, _ in given], epochs)
    seconds = time.process_time() - start
    model.eval(), head.eval()
    right, looked = 0, list[Tensor]()
    with torch.no_grad():
        for x, y, some in batches(unseen):
            right += int((head(pooled(model, x)).argmax(-1) == y).sum())
            if kind == "attention" and isinstance(model, Han):
                looked.append(masses(model, x, some))
    told = "-"
    if looked:
        both = torch.cat(looked)
        of = (*both.mean(0).tolist(), both.prod(-1).mean().item())
        told = " ".join(f"{share:.3f}" for share in of)
    return f"{kind:10} {100 * right / len(unseen):10.1f} {told:>20} {seconds:8.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    known = ["attention", "mean", "birnn"]
    parser.add_argument("--models", nargs="+", default=known, choices=known)
    parser.add_argument("--size", type=int, default=3000)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    torch.set_num_threads(1)
    print(f"{'model':10} {'accuracy %':>10} {'word, sentence, both':>20} {'CPU s':>8}")
    for kind in given.models:
        corpus = PlantedWords(given.size, held_out=1000, seed=given.seed)
        print(row(kind, corpus, given.epochs, given.seed), flush=True)


if __name__ == "__main__":
    main()
