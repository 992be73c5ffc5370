"""Word alignment English - French: trained on Tatoeba, compared with the Hansards' gold links.

    REGARD_MIRROR=FOLDER python benchmarks/hansards.py [--folder runs/hansards] [--steps 1500]

FOLDER/alignment/wpt_enfr has the 447 pairs of WPT 2003. Both directions are trained on Tatoeba, its
words written as in the Hansards (but in lower case: "au" as "à le", "l'" as "le"), and on the text
of the 447 pairs, `--copies` times over: their text, never their links. Layer and shift are chosen
where both directions agree best, without gold. The same command goes on.
"""

import argparse
import os
import re
from pathlib import Path

from command import regard

from regard.config.data.text_pairs import PublicTranslationDataConfig
from regard.data.build import build_corpus
from regard.files import write_atomic

WORD = re.compile(r"\w+(?:-\w+)*|'\w+|\.\.\.|[^\w\s]")
ELIDED = re.compile(r"\b(d|l|n|s|j|c|m|t|qu|jusqu|lorsqu|puisqu)'")
MERGED = {"au": "à le", "aux": "à les", "du": "de le", "des": "de les"}
CONFIG = """\
task = "translate"
seed = 1

[data]
kind = "files"
train = "train.tsv"
dev = "dev.tsv"
columns = {columns}

[text]
kind = "bpe"
size = 10000
joint = true

[model]
kind = "transformer"
dim = 128
hidden_dim = 256
heads = 4
layers = 3
tie_embeddings = "all"
norm = "pre"
dropout = 0.1

[train]
steps = {steps}
tokens_per_batch = 3000
learning_rate = 0.003
label_smoothing = 0.1
max_grad_norm = 5.0
validate_every = 500
save_every = 250

[train.schedule]
kind = "cosine"
warmup = 300
floor = 0.05
"""


def english(text: str) -> str:
    for short, full in (("won't", "will not"), ("can't", "can not"), ("n't", " not")):
        text = text.lower().replace(short, full)
    return " ".join(WORD.findall(text))


def french(text: str) -> str:
    words = WORD.findall(ELIDED.sub(r"\1e ", text.lower()))
    return " ".join(MERGED.get(word, word) for word in words)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path("runs/hansards"))
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--copies", type=int, default=20)
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    wpt = (Path(os.environ["REGARD_MIRROR"]) / "alignment" / "wpt_enfr").resolve()
    hansards = (wpt / "enfr.src-tgt").read_text("utf-8").lower().splitlines()
    tested = ["\t".join(side.strip() for side in line.split("|||")) for line in hansards]
    tatoeba = build_corpus(PublicTranslationDataConfig(name="tatoeba", source="en", target="fr"))
    for part, more in (("train", tested * given.copies), ("dev", [])):
        rows = (f"{english(r['source'])}\t{french(r['target'])}" for r in tatoeba.read(part))
        write_atomic(given.folder / f"{part}.tsv", ("\n".join([*rows, *more]) + "\n").encode())
    write_atomic(given.folder / "test.tsv", ("\n".join(tested) + "\n").encode())
    for name, columns in (("en-fr", ["source", "target"]), ("fr-en", ["target", "source"])):
        text = CONFIG.format(columns=columns, steps=given.steps).replace("'", '"')
        write_atomic(given.folder / f"{name}.toml", text.encode())
        regard(given.folder, "train", f"{name}.toml", "--threads", str(given.threads))
    gold = ["--gold", str(wpt / "enfr.gold"), "--gold-base", "1", "--save", "test.align"]
    both = ["--reverse", "runs/fr-en", "--dev", "test.tsv"]
    for way in ("intersection", "grow-diag", "grow-diag-final"):
        print(way, flush=True)
        regard(given.folder, "align", "runs/en-fr", "test.tsv", *both, "--symmetrize", way, *gold)


if __name__ == "__main__":
    main()
