"""HAN finds the one word that tells the class; benchmarks/planted.py has larger documents."""

import time

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.attention.observe import observe
from regard.data.synthetic.planted import PlantedWords
from regard.layers.output_heads import ClassifierHead
from regard.models.han import Han, scatter_rows

SIZES = {
    "classes": 12,
    "keywords_per_class": 1,
    "filler_words": 50,
    "min_sentences": 4,
    "max_sentences": 6,
    "min_words": 3,
    "max_words": 5,
}
STEPS, BATCH, RATE = 120, 32, 8e-3


def tensors(corpus: PlantedWords, split: str) -> tuple[Tensor, Tensor, Tensor]:
    """Ids [n s w], classes [n], and where the word is [n 2]."""
    known = [*corpus.filler, *(word for words in corpus.keys.values() for word in words)]
    ids = {word: number for number, word in enumerate(known, 1)}
    records = list(corpus.read(split))
    rows = torch.zeros(len(records), SIZES["max_sentences"], SIZES["max_words"], dtype=torch.int64)
    for row, record in zip(rows, records, strict=True):
        for place, line in enumerate(record["text"].split("\n")):
            words = [ids[word] for word in line.split()]
            row[place, : len(words)] = torch.tensor(words)
    classes = torch.tensor([[*corpus.keys].index(record["label"]) for record in records])
    return rows, classes, torch.tensor([(r["sentence"], r["word"]) for r in records])


def train(model: Han, head: ClassifierHead, ids: Tensor, classes: Tensor) -> None:
    weights = [*model.parameters(), *head.parameters()]
    optimizer = torch.optim.Adam(weights, lr=RATE)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, total_steps=STEPS + 1)
    for _ in range(STEPS):
        some = torch.randint(len(ids), (BATCH,))
        pooled = model.encode(ids[some], ids[some] > 0).pooled
        optimizer.zero_grad()
        F.cross_entropy(head(pooled), classes[some]).backward()
        nn.utils.clip_grad_norm_(weights, 1.0)
        optimizer.step()
        schedule.step()


def test_han_finds_the_planted_word(seed, unchecked):
    corpus = PlantedWords(600, held_out=200, seed=seed, **SIZES)
    model = Han(SIZES["filler_words"] + SIZES["classes"] + 1, dim=32, hidden_dim=16)
    head = ClassifierHead(model.pooled_width, SIZES["classes"])
    start = time.process_time()
    train(model, head, *tensors(corpus, "train")[:2])
    seconds = time.process_time() - start
    ids, classes, place = tensors(corpus, "test")
    with torch.no_grad(), observe(model) as seen:
        _, there, pooled = model.encode(ids, ids > 0)
    right = (head(pooled).argmax(-1) == classes).float().mean().item()
    row = torch.arange(len(ids))
    words = scatter_rows(seen.joined()["word_attention"], there)[row, place[:, 0], 0, place[:, 1]]
    sentences = seen.joined()["sentence_attention"][row, 0, place[:, 0]]
    mass = (words * sentences).mean().item()
    print(f"{right:.3f} right, {mass:.3f} on the word, after {seconds:.1f} s, seed {seed}")
    assert right > 0.97, f"seed {seed}"
    assert mass > 0.8, f"seed {seed}"
