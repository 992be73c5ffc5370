"""Does it help to have read before? BERT and ELMo, pretrained on film reviews, on SST-2.

    REGARD_MIRROR=FOLDER python benchmarks/pretrained.py bert|elmo [--folder runs/pretrained]

The text is that of IMDB's sample (10,000 reviews, without their labels). Each network is pretrained
here, and once more for a single step, which leaves it as chance made it: the two then have the same
vocabulary, size and training. BERT is fine-tuned on all of SST-2, and on a tenth of it; ELMo rests,
only its mix and the head learn, from a tenth of the labels, beside a recurrent network with vectors
of its own. Three seeds each, `regard compare` tells their mean and spread. The same command goes
on.
"""

import argparse
from itertools import chain
from pathlib import Path

from command import regard
from sst2 import LINES, WORD

from regard.config.data.texts import PublicLabeledDataConfig
from regard.data.build import build_corpus
from regard.files import write_atomic

BERT = """
task = "pretrain"
data = { kind = "text", train = "reviews.txt", unit = "paragraph", held_out = 0.02 }
text = { kind = "wordpiece", size = 8000, lower = true }
[model]
kind = "bert"
dim = 128
heads = 2
layers = 2
max_positions = 128
pretrain = "both"
dropout = 0.0
init_std = 0.08
[mask]
rate = 0.3
[train]
steps = STEPS
examples_per_batch = 64
max_tokens = 40
learning_rate = 2e-3
validate_every = 500
save_every = 500
schedule = { kind = "cosine", warmup = WARMUP }
"""
ELMO = """
task = "pretrain"
data = { kind = "text", train = "reviews.txt", unit = "paragraph", held_out = 0.02 }
text = { kind = "words", size = 8000 }
[model]
kind = "elmo"
dim = 64
hidden_dim = 128
filters = [[1, 16], [2, 16], [3, 32], [4, 64]]
highway_layers = 1
[train]
steps = STEPS
examples_per_batch = 48
max_tokens = 40
learning_rate = 3e-3
validate_every = 500
save_every = 500
schedule = { kind = "cosine", warmup = WARMUP }
"""
TUNED = """
task = "classify"
data = { kind = "public", name = "sst2" }
start = { run = "runs/START" }
head = { pooling = "mean", dropout = 0.5 }
[train]
steps = 650
examples_per_batch = 32
max_tokens = 80
learning_rate = 1e-3
validate_every = 108
save_every = 325
metric = "accuracy"
schedule = { kind = "cosine", warmup = 50 }
"""
FILES = '{ kind = "labeled", train = "tenth.tsv", dev = "dev.tsv", test = "test.tsv" }'
TENTH = TUNED.replace('{ kind = "public", name = "sst2" }', FILES).replace("650", "220")
FEW = f"""
task = "classify"
data = {FILES}
FROM
head = {{ dropout = 0.5 }}
[train]
steps = 400
examples_per_batch = 32
learning_rate = RATE
validate_every = 50
save_every = 200
metric = "accuracy"
"""
STEPS = {"bert": 6000, "elmo": 3000}  # of pretraining
OWN = """text = { kind = "words", size = 20000 }
model = { kind = "birnn", dim = 128, hidden_dim = 64, dropout = 0.5 }"""


def apart(text: str) -> str:
    """Return a review in the spelling of SST-2: lower case, "do n't", "it 's", marks apart."""
    return " ".join(WORD.findall(LINES.sub(" ", text.lower())))


def reviews() -> str:
    corpus = build_corpus(PublicLabeledDataConfig(name="imdb_sample"))
    texts = [record["text"] for split in corpus.splits for record in corpus.read(split)]
    return "\n\n".join(map(apart, texts)) + "\n"


def configs(which: str, steps: int) -> tuple[dict[str, str], dict[str, dict[str, str]]]:
    """What is pretrained, and what is compared: for each report its own."""
    text = BERT if which == "bert" else ELMO
    read, fresh = f"{which}-read", f"{which}-fresh"
    first = {
        read: text.replace("STEPS", str(steps)).replace("WARMUP", "100"),
        fresh: text.replace("STEPS", "1").replace("WARMUP", "0"),
    }
    if which == "bert":
        tuned = {f"{name}-tuned": TUNED.replace("START", name) for name in first}
        tenth = {f"{name}-tenth": TENTH.replace("START", name) for name in first}
        return first, {"bert": tuned, "bert-tenth": tenth}
    few = {
        f"{name}-mixed": FEW.replace("RATE", "1e-2").replace(
            "FROM", f'start = {{ run = "runs/{name}", freeze = true }}'
        )
        for name in first
    }
    own = {"birnn": FEW.replace("RATE", "1e-3").replace("FROM", OWN)}
    return first, {"elmo": few | own}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("which", choices=("bert", "elmo"))
    parser.add_argument("--folder", type=Path, default=Path("runs/pretrained"))
    parser.add_argument("--steps", type=int)
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    folder, threads = given.folder, ["--threads", str(given.threads)]
    folder.mkdir(parents=True, exist_ok=True)
    write_atomic(folder / "reviews.txt", reviews().encode())
    sst = build_corpus(PublicLabeledDataConfig(name="sst2"))
    for split, name, every in (("train", "tenth", 10), ("dev", "dev", 1), ("test", "test", 1)):
        rows = [f"{r['text']}\t{r['label']}\n" for r in list(sst.read(split))[::every]]
        write_atomic(folder / f"{name}.tsv", "".join(rows).encode())
    first, compared = configs(given.which, given.steps or STEPS[given.which])
    for name, text in chain(first.items(), *(texts.items() for texts in compared.values())):
        write_atomic(folder / f"{name}.toml", text.encode())
    for name in first:
        regard(folder, "train", f"{name}.toml", *threads)
    for report, texts in compared.items():
        options = ["--sweep", "seed=1,2,3", "--report-folder", f"runs/report-{report}", *threads]
        regard(folder, "compare", *(f"{name}.toml" for name in texts), *options)


if __name__ == "__main__":
    main()
