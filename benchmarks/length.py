"""Does attention hold where one vector cannot? BLEU by length, as in Bahdanau et al. 2015, fig. 2.

    REGARD_MIRROR=... python benchmarks/length.py [--folder runs/length] [--longest 50]

Multi30k has short sentences only, so 1 to 4 consecutive ones are joined: both models train on what
then has at most 50 words (the paper's "-50"; --longest 30 is its "-30"), and are tested on up to
four joined test sentences. `regard compare` trains, scores and draws; the same command goes on.
"""

import argparse
from collections.abc import Iterable
from pathlib import Path

from command import regard

from regard.config.data.text_pairs import PublicTranslationDataConfig
from regard.config.presets import preset_paths
from regard.data.build import build_corpus
from regard.data.corpus import Record
from regard.files import write_atomic
from regard.metrics.comparison import concatenated_records

MODELS = ("ladder-encdec", "ladder-rnnsearch")
JOINED = 4


def short(records: Iterable[Record], longest: int) -> list[dict[str, str]]:
    """Joined records with at most so many words on both sides."""
    return [
        record
        for record in concatenated_records(list(records), JOINED)
        if all(len(text.split()) <= longest for text in record.values())
    ]


def write(path: Path, records: Iterable[Record]) -> None:
    write_atomic(path, "".join(f"{r['source']}\t{r['target']}\n" for r in records).encode())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path("runs/length"))
    parser.add_argument("--steps", type=int, default=4000)
    parser.add_argument("--longest", type=int, default=50)
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    corpus = build_corpus(
        PublicTranslationDataConfig(name="multi30k_tok", source="de", target="en")
    )
    write(given.folder / "train.tsv", short(corpus.read("train"), given.longest))
    write(given.folder / "dev.tsv", short(corpus.read("dev"), given.longest))
    write(given.folder / "test.tsv", corpus.read("test"))
    files = "".join(f'{part} = "{part}.tsv"\n' for part in ("train", "dev", "test"))
    data = f'[data]\nkind = "files"\n{files}'
    for name in MODELS:
        head, _, rest = preset_paths()[name].read_text("utf-8").partition("[data]")
        rest = rest[rest.index("[text]") :]
        write_atomic(given.folder / f"{name}.toml", f"{head}{data}\n{rest}".encode())
    words = [f"{name}.toml" for name in MODELS] + [
        f"train.steps={given.steps}",
        "metrics.tokenize=none",
    ]
    options = ["--join", str(JOINED), "--threads", str(given.threads)]
    regard(given.folder, "compare", *words, *options)


if __name__ == "__main__":
    main()
