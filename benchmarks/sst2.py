"""SST-2 without anybody's weights: a recurrent network with attention that read other films first.

    REGARD_MIRROR=FOLDER python benchmarks/sst2.py [--folder runs/sst2] [--seed 1]

SST-2 has 6,920 sentences to train on: a network that sees nothing else soon knows them by heart.
IMDB's sample has 120,000 more in 10,000 reviews, but the label of a review is not that of each of
its sentences. So teachers, bags of words and of pairs of words (Joulin et al. 2016, 1607.01759),
say how likely it is that a sentence is positive; none is asked of a review that it learnt from. A
label is drawn for each sentence, by what its teachers say and by the label of its review. The
network learns these sentences together with those of SST-2. The same command goes on.
"""

import argparse
import random
import re
from collections import Counter
from collections.abc import Sequence
from itertools import chain, pairwise
from pathlib import Path
from typing import NamedTuple

import torch
import torch.nn.functional as F
from command import regard
from torch import Tensor, nn

from regard.config.data.texts import PublicLabeledDataConfig
from regard.data.build import build_corpus
from regard.data.corpus import Corpus
from regard.files import write_atomic

LINES = re.compile(r"<br\s*/?>")
WORD = re.compile(r"\w+(?=n't\b)|n't\b|'(?:s|re|ve|ll|d|m)\b|\w+|[^\w\s-]")
LONGEST = 400  # words of a review that a teacher reads
SENTENCE = range(4, 51)  # words of a sentence that is learnt
PARTS, BAGS = 4, 4  # of the reviews, and teachers of each part
DIM, RATE, DROPPED = 64, 3e-3, 0.3
TIMES = 3  # each sentence of SST-2 to a teacher, beside each review
REVIEW = 1.0  # log odds that a sentence is what its review is
MORE = 6  # times each sentence of SST-2 among those of the reviews
CONFIG = """
task = "classify"
seed = SEED
data = { kind = "labeled", train = "both-SEED.tsv", dev = "dev.tsv", test = "test.tsv" }
text = { kind = "words", size = 40000, min_count = 2 }
model = { kind = "birnn", dim = 128, hidden_dim = 128, align_dim = 64, dropout = 0.4 }
head = { dropout = 0.4 }
[train]
steps = 2500
examples_per_batch = 64
learning_rate = 0.002
validate_every = 250
save_every = 500
metric = "accuracy"
ema = 0.998
schedule = { kind = "cosine", warmup = 50, floor = 0.02 }
"""
LABELS = ("negative", "positive")
Labeled = tuple[list[str], int]  # words, and which of these they are
Known = dict[str | tuple[str, str], int]  # the number of each word and pair of words


class Counts(NamedTuple):
    """What a bag sees of a text."""

    ids: Tensor
    words: int


def labeled(corpus: Corpus, *splits: str) -> list[Labeled]:
    """In lower case, words and marks apart, "n't" and "'s" by themselves, as SST-2 has them."""
    records = chain.from_iterable(map(corpus.read, splits))
    return [
        (WORD.findall(LINES.sub(" ", r["text"].lower())), LABELS.index(r["label"])) for r in records
    ]


class Bag(nn.Module):
    """log odds = w . (sum of vectors of words and pairs) / words + b."""

    def __init__(self, known: int):
        super().__init__()
        self.vectors = nn.EmbeddingBag(known, DIM, mode="sum")
        nn.init.normal_(self.vectors.weight, std=0.1)
        self.output = nn.Linear(DIM, 1)

    def forward(self, texts: Sequence[Counts]) -> Tensor:
        ids = [one.ids for one in texts]
        if self.training:
            ids = [one[torch.rand(len(one)) > DROPPED] for one in ids]
        starts = torch.tensor([0, *map(len, ids[:-1])]).cumsum(0)
        words = torch.tensor([one.words for one in texts])
        return self.output(self.vectors(torch.cat(ids), starts) / words[:, None]).squeeze(1)


def taught(texts: list[tuple[Counts, int]], known: int) -> Bag:
    """Once through the texts."""
    bag = Bag(known)
    optimiser = torch.optim.Adam(bag.parameters(), RATE, fused=True)
    texts = random.sample(texts, len(texts))
    for start in range(0, len(texts), 32):
        optimiser.param_groups[0]["lr"] = RATE * (1 - 0.9 * start / len(texts))
        words, labels = zip(*texts[start : start + 32], strict=True)
        loss = F.binary_cross_entropy_with_logits(bag(words), torch.tensor(labels).float())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return bag.eval()


def counts_of(words: list[str], known: Known) -> Counts:
    words = words[:LONGEST]
    found = [known[one] for one in chain(words, pairwise(words)) if one in known]
    return Counts(torch.tensor(found, dtype=torch.int64), max(1, len(words)))


def counted(texts: list[Labeled]) -> Known:
    """The words that are there twice, and the pairs of words that are there four times."""
    words = Counter(word for text, _ in texts for word in text)
    pairs = Counter(pair for text, _ in texts for pair in pairwise(text))
    kept = [w for w, n in words.items() if n > 1], [p for p, n in pairs.items() if n > 3]
    return {one: number for number, one in enumerate(chain(*kept))}


def sentences(words: list[str]) -> list[list[str]]:
    ends = [0, *(place for place, word in enumerate(words, 1) if word in ".!?"), len(words)]
    return [words[a:b] for a, b in pairwise(ends) if b - a in SENTENCE]


@torch.no_grad()
def drawn(bags: list[Bag], review: Labeled, known: Known) -> list[Labeled]:
    """A review's sentences, each with a label of its own."""
    words, label = review
    parts = sentences(words)
    if not parts:
        return []
    counts = [counts_of(part, known) for part in parts]
    likely = sum(bag(counts) for bag in bags) / len(bags) + REVIEW * (2 * label - 1)
    return list(zip(parts, likely.sigmoid().bernoulli().int().tolist(), strict=True))


def lessons(sst2: list[Labeled], reviews: list[Labeled]) -> list[Labeled]:
    known = counted(sst2 + reviews)
    own = [(counts_of(words, known), label) for words, label in sst2]
    read = [(counts_of(words, known), label) for words, label in reviews]
    part = [random.randrange(PARTS) for _ in reviews]
    rows = MORE * sst2
    for one in range(PARTS):
        others = [review for review, its in zip(read, part, strict=True) if its != one]
        bags = [taught(others + TIMES * own, len(known)) for _ in range(BAGS)]
        print(f"the teachers of part {one + 1} of {PARTS} have learnt", flush=True)
        for review, its in zip(reviews, part, strict=True):
            rows += drawn(bags, review, known) if its == one else []
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path("runs/sst2"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(given.threads)
    torch.manual_seed(given.seed)
    random.seed(given.seed)
    sst2, imdb = (
        build_corpus(PublicLabeledDataConfig(name="sst2")),
        build_corpus(PublicLabeledDataConfig(name="imdb_sample")),
    )
    files = {
        "dev.tsv": lambda: labeled(sst2, "dev"),
        "test.tsv": lambda: labeled(sst2, "test"),
        f"both-{given.seed}.tsv": lambda: lessons(
            labeled(sst2, "train"), labeled(imdb, *imdb.splits)
        ),
    }
    for name, make in files.items():
        if not (given.folder / name).exists():
            rows = [f"{' '.join(words)}\t{LABELS[label]}\n" for words, label in make()]
            write_atomic(given.folder / name, "".join(rows).encode())
    name = f"sst2-{given.seed}"
    write_atomic(given.folder / f"{name}.toml", CONFIG.replace("SEED", str(given.seed)).encode())
    regard(given.folder, "train", f"{name}.toml", "--threads", str(given.threads))
    regard(given.folder, "score", f"runs/{name}")


if __name__ == "__main__":
    main()
