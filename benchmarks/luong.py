"""Every attention of Luong et al. 2015 on Multi30k German -> English, in one `regard compare`.

    REGARD_MIRROR=FOLDER python benchmarks/luong.py [--folder runs/luong] [--steps 1800]

Seven ways to look, and no look at all. The error rate is against the German-English gold of Bicici
in FOLDER/alignment: 100 sentences of Europarl, whose words captions seldom have, and of a word that
it does not know a model knows the place only. All learn alike, at three times the rate of the
ladder, since they do so for less than half as long; a score's own matrices are slower, since all
their numbers move a weight at once. The same command goes on.
"""

import argparse
import os
from pathlib import Path

from command import regard

from regard.config.presets import preset_paths
from regard.files import write_atomic

SLOW = {"general": 0.01, "additive": 0.05}  # share of the rate for a score's own matrices
MODELS = {
    "location": 'score = "location"',
    "dot": 'score = "dot"',
    "general": 'score = "general"',
    "concat": 'score = "additive"',
    "local-m": 'score = "general"\nwindow = "local_m"',
    "local-p": 'score = "general"\nwindow = "local_p"',
    "local-p-dot": 'score = "dot"\nwindow = "local_p"',
}
LUONG = 'kind = "luong"\ndim = 128\nhidden_dim = 256\nlayers = 1\ninit = "scaled"'
ALL = ["train.learning_rate=0.006", "model.dropout=0.2"]


def configs() -> dict[str, str]:
    """The settings of the ladder's model without attention; the others differ in [model]."""
    plain = preset_paths()["ladder-encdec"].read_text("utf-8")
    head, _, rest = plain.partition("[model]")
    rest = rest[rest.index("[train]") + len("[train]") :]
    made: dict[str, str] = {}
    for name, way in MODELS.items():
        score = way.split('"')[1]
        slow = (
            f'rate_multipliers = {{ "attention.score" = {SLOW[score]} }}' if score in SLOW else ""
        )
        made[name] = f"{head}[model]\n{LUONG}\n{way}\n\n[train]\n{slow}{rest}"
    return {"no-attention": plain} | made


def truth(folder: Path) -> tuple[str, str]:
    """Gold links, without the one that points outside its sentence, and the pairs."""
    sides = [(folder / f"test.{side}").read_text("utf-8-sig").splitlines() for side in ("de", "en")]
    pairs = list(zip(*sides, strict=True))
    links = []
    rows = (folder / "de-en.wa").read_text("utf-8-sig").splitlines()
    for row, (source, target) in zip(rows, pairs, strict=True):
        ends = [tuple(map(int, link.split("-"))) for link in row.split()]
        sizes = len(source.split()), len(target.split())
        links.append(" ".join(f"{s}-{t}" for s, t in ends if s < sizes[0] and t < sizes[1]))
    return "\n".join(links) + "\n", "".join(f"{s} ||| {t}\n" for s, t in pairs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path("runs/luong"))
    parser.add_argument("--steps", type=int, default=1800)
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    for name, text in configs().items():
        write_atomic(given.folder / f"{name}.toml", text.encode())
    gold, pairs = truth(Path(os.environ["REGARD_MIRROR"]) / "alignment" / "europarl_deen_bicici")
    write_atomic(given.folder / "gold.txt", gold.encode())
    write_atomic(given.folder / "pairs.txt", pairs.encode())
    words = [f"{name}.toml" for name in configs()] + [
        f"train.steps={given.steps}",
        "metrics.tokenize=none",
        *ALL,
    ]
    options = [
        "--gold",
        "gold.txt",
        "--pairs",
        "pairs.txt",
        "--show-attention",
    ]
    regard(given.folder, "compare", *words, *options, "--threads", str(given.threads))


if __name__ == "__main__":
    main()
