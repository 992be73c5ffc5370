"""Given alignments teach attention where to look sooner than translation alone does."""

import random
from pathlib import Path

import pytest

from regard.metrics.alignment import agreement
from regard.metrics.alignment_files import GoldAlignment, to_pharaoh
from regard.run import Run
from regard.tasks.alignment import Aligner
from regard.tasks.load import resolve_settings
from regard.training.trainer import Trainer

WORDS = [f"w{n}" for n in range(12)]


def made(count: int, draw: random.Random) -> tuple[list[str], list[list[tuple[int, int]]]]:
    """Sentences of six words, translated word by word from the end, and their links."""
    rows, links = [], []
    for _ in range(count):
        words = [draw.choice(WORDS) for _ in range(6)]
        said = [word.upper() for word in reversed(words)]
        rows.append(f"{' '.join(words)}\t{' '.join(said)}")
        links.append([(n, len(words) - 1 - n) for n in range(len(words))])
    return rows, links


@pytest.mark.parametrize(
    ("kind", "own", "steps"),
    [
        ("rnnsearch", {"init": "scaled"}, 40),
        ("transformer", {"layers": 2, "heads": 2, "dropout": 0.0}, 60),
    ],
    ids=["rnnsearch", "transformer"],
)
def test_the_error_rate_falls_sooner(kind, own, steps, tmp_path: Path, seed: int, unchecked: None):
    draw = random.Random(seed)
    rows, links = made(500, draw)
    (tmp_path / "train.tsv").write_text("\n".join(rows) + "\n")
    (tmp_path / "train.align").write_text("".join(f"{to_pharaoh(one)}\n" for one in links))
    unseen, truth = made(60, draw)
    texts = [(row.split("\t")[0], row.split("\t")[1]) for row in unseen]
    gold = [GoldAlignment(frozenset(one), frozenset(one)) for one in truth]
    rates = []
    for weight in (0.0, 1.0):
        settings = resolve_settings(
            {
                "seed": seed,
                "data": {"kind": "files", "train": str(tmp_path / "train.tsv")},
                "text": {"kind": "words"},
                "model": {"kind": kind, "dim": 32, **own},
                "train": {
                    "steps": steps,
                    "examples_per_batch": 32,
                    "learning_rate": 5e-3,
                    "guided_alignment_weight": weight,
                    "alignments": str(tmp_path / "train.align"),
                },
            }
        )
        folder = tmp_path / f"run{weight}"
        for _ in Trainer(settings, folder):
            pass
        aligner = Aligner(Run.load(folder).task)
        found = aligner.links(texts, [aligner.default_selection()])[0]
        rates.append(agreement(found, gold).aer)
    print(f"{kind}: AER {rates[0]:.3f} unguided, {rates[1]:.3f} guided, seed {seed}")
    assert rates[1] < min(0.5 * rates[0], 0.2), f"seed {seed}"
