"""Real gold files beside what is known of them.

    python benchmarks/gold.py FOLDER

FOLDER holds `alignment/wpt_enfr`, `alignment/europarl_deen_bicici` and `translation/multi30k_tok`.
Prints what was counted beside what is known, and exits with 1 where they differ.
"""

import argparse
import gzip
import sys
from pathlib import Path

from regard.metrics.alignment import agreement
from regard.metrics.alignment_files import Links, read_gold, read_links
from regard.metrics.translation import bleu


def slow_aer(path: Path, guessed: list[Links]) -> float:
    """AER of alignments beside a WPT gold file, from its text and the definition."""
    hits = total = 0
    for line, links in zip(path.read_text().splitlines(), guessed, strict=True):
        sure = {piece for piece in line.split() if "-" in piece}
        possible = {piece.replace("p", "-") for piece in line.split()}
        mine = {f"{i + 1}-{j + 1}" for i, j in links}
        hits += len(mine & sure) + len(mine & possible)
        total += len(mine) + len(sure)
    return 1 - hits / total


def rows(folder: Path) -> list[tuple[str, object, object]]:
    wpt = folder / "alignment" / "wpt_enfr"
    gold = read_gold(wpt / "enfr.gold", base=1)
    pairs = [line.split("|||") for line in (wpt / "enfr.src-tgt").read_text().splitlines()]
    sizes = [(len(source.split()), len(target.split())) for source, target in pairs]
    diagonal = [frozenset((min(n - 1, j * n // m), j) for j in range(m)) for n, m in sizes]
    bicici = folder / "alignment" / "europarl_deen_bicici"
    numbered = read_gold(bicici / "de-en.ref.wa", sentences=100)
    tokenised = folder / "translation" / "multi30k_tok" / "test_2016_flickr.lc.norm.tok.de.gz"
    lines = gzip.decompress(tokenised.read_bytes()).decode().splitlines()
    itself = bleu(lines, lines, tokenize="none", smooth="none", force=True)
    return [
        ("en-fr: sentences", len(gold), 447),
        ("en-fr: sure links", sum(len(one.sure) for one in gold), 4038),
        ("en-fr: possible only", sum(len(one.possible - one.sure) for one in gold), 13400),
        ("en-fr: sure links beside gold, AER", agreement([g.sure for g in gold], gold).aer, 0.0),
        (
            "en-fr: links outside their sentence",
            sum(
                i >= n or j >= m
                for (n, m), g in zip(sizes, gold, strict=True)
                for i, j in g.possible
            ),
            0,
        ),
        (
            "en-fr: diagonal, AER",
            round(agreement(diagonal, gold).aer, 9),
            round(slow_aer(wpt / "enfr.gold", diagonal), 9),
        ),
        ("de-en: sure links", sum(len(one.sure) for one in numbered), 1233),
        (
            "de-en: one format beside the other, AER",
            agreement(read_links(bicici / "de-en.wa"), numbered).aer,
            0.0,
        ),
        ("multi30k de: reference length", "ref_len = 12103" in itself.detail, True),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    wrong = 0
    for name, found, known in rows(parser.parse_args().folder):
        wrong += found != known
        print(f"{name:42} {found!s:>14} {known!s:>14}  {'' if found == known else 'DIFFERS'}")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
