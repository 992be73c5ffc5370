"""SST-2 without anybody's weights: a recurrent network with attention that read other films first.

    REGARD_MIRROR=FOLDER python benchmarks/sst2.py [--folder runs/sst2] [--seed 1]

SST-2 has 6,920 sentences to train on: a network that sees nothing else soon knows them by heart. So
it first learns to tell reviews of IMDB's sample (10,000 with their labels, cut to 200 words, in
SST-2's spelling) and these sentences together, and then the sentences alone. The same command goes
on.
"""

import argparse
import re
from pathlib import Path

from command import regard

from regard.config.data import NamedLabelled
from regard.config.whole import write_whole
from regard.corpora.build import build
from regard.corpora.corpus import Corpus

LINES = re.compile(r"<br\s*/?>")
WORD = re.compile(r"\w+(?=n't\b)|n't\b|'(?:s|re|ve|ll|d|m)\b|\w+|[^\w\s-]")
LONGEST = 200  # words
FIRST = """
task = "classify"
seed = SEED
data = { kind = "labelled", train = "both.tsv", dev = "dev.tsv", test = "test.tsv" }
text = { kind = "words", size = 30000, min_count = 2 }
model = { kind = "birnn", dim = 128, hidden_dim = 128, dropout = 0.4 }
head = { dropout = 0.5 }
[train]
steps = 1600
tokens_per_batch = 4000
learning_rate = 0.002
validate_every = 200
save_every = 400
metric = "accuracy"
schedule = { kind = "cosine", warmup = 50, floor = 0.05 }
"""
THEN = """
task = "classify"
seed = SEED
data = { kind = "named", name = "sst2" }
start = { run = "runs/reviews" }
head = { dropout = 0.5 }
[train]
steps = 600
sentences_per_batch = 50
learning_rate = 0.0005
validate_every = 50
save_every = 200
metric = "accuracy"
schedule = { kind = "cosine", warmup = 20 }
"""


def spelled(text: str) -> str:
    """In lower case, words and marks apart, "n't" and "'s" by themselves, as SST-2 has them."""
    return " ".join(WORD.findall(LINES.sub(" ", text.lower()))[:LONGEST])


def rows(corpus: Corpus, *splits: str) -> list[str]:
    records = (record for split in splits for record in corpus.read(split))
    return [f"{spelled(r['text'])}\t{r['label']}\n" for r in records]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path("runs/sst2"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    sst2, imdb = build(NamedLabelled(name="sst2")), build(NamedLabelled(name="imdb_sample"))
    files = {
        "both.tsv": rows(imdb, *imdb.splits) + rows(sst2, "train"),
        "dev.tsv": rows(sst2, "dev"),
        "test.tsv": rows(sst2, "test"),
    }
    for name, lines in files.items():
        write_whole(given.folder / name, "".join(lines).encode())
    for name, text in (("reviews", FIRST), ("sst2", THEN)):
        write_whole(given.folder / f"{name}.toml", text.replace("SEED", str(given.seed)).encode())
        regard(given.folder, "train", f"{name}.toml", "--threads", str(given.threads))
        regard(given.folder, "score", f"runs/{name}")


if __name__ == "__main__":
    main()
