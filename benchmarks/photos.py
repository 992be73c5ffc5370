"""Captions of real images: photographs of COCO with open licences, and Twemoji by their names.

    REGARD_MIRROR=FOLDER python benchmarks/photos.py coco|twemoji [--folder runs/photos]

FOLDER has images/coco_open_mini and images/twemoji64, each with images.zip and its captions. A
tenth of the images is held out as dev, a tenth as test, by their bytes. Prints the scores on
both, and on as many images that were learnt from; writes a strip of where the model looked, word
by word, for the first images of either. The same command goes on.
"""

import argparse
import csv
import json
import os
import zipfile
from pathlib import Path

from command import regard

from regard.files import write_atomic
from regard.run import Run
from regard.view.export import build_serializer

CONFIG = """
task = "caption"
data = { kind = "captions", train = "SET/captions.jsonl" }
text = { kind = "words", lower = true, split_punctuation = true, min_count = COMMON }
image = { size = [SIDE, SIDE] }
decode = { kind = "beam", width = 3, max_length = 25 }
[model]
kind = "show_attend"
dim = 64
hidden_dim = 128
image_dim = 64
image_layers = LAYERS
pooling_layers = POOLS
dropout = 0.3
[train]
steps = STEPS
examples_per_batch = 32
learning_rate = 0.002
max_grad_norm = 1.0
crop_padding = 4
metric = "cider"
validate_every = 100
save_every = 200
schedule = { kind = "cosine", warmup = 50 }
"""
SETS = {
    "coco": ("coco_open_mini", {"SIDE": 96, "LAYERS": 4, "POOLS": 4, "STEPS": 800, "COMMON": 2}),
    "twemoji": ("twemoji64", {"SIDE": 64, "LAYERS": 3, "POOLS": 3, "STEPS": 1500, "COMMON": 1}),
}


def captions(place: Path) -> list[dict[str, str]]:
    if (place / "captions.json").is_file():
        told = json.loads((place / "captions.json").read_text("utf-8"))
        return [{"image": one["file"], "caption": text} for one in told for text in one["captions"]]
    with (place / "captions.tsv").open(encoding="utf-8", newline="") as rows:
        told = csv.DictReader(rows, delimiter="\t")
        return [{"image": one["image"], "caption": one["name"]} for one in told]


def unpack(name: str, folder: Path) -> None:
    place = Path(os.environ["REGARD_MIRROR"]) / "images" / name
    with zipfile.ZipFile(place / "images.zip") as images:
        images.extractall(folder)
    lines = [json.dumps(one, ensure_ascii=False) for one in captions(place)]
    write_atomic(folder / "captions.jsonl", ("\n".join(lines) + "\n").encode())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("which", choices=SETS)
    parser.add_argument("--folder", type=Path, default=Path("runs/photos"))
    parser.add_argument("--shown", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    name, settings = SETS[given.which]
    unpack(name, given.folder / given.which)
    text = CONFIG.replace("SET", given.which, 1)
    for word, value in settings.items():
        text = text.replace(word, str(value))
    write_atomic(given.folder / f"{given.which}.toml", text.encode())
    regard(given.folder, "train", f"{given.which}.toml", "--threads", str(given.threads))
    os.chdir(given.folder)
    run = Run.load(Path("runs") / given.which)
    held_out = {split: list(run.corpus().read(split)) for split in ("test", "dev")}
    learnt = list(run.corpus().read("train"))[: len(held_out["test"])]
    for split, records in {"train": learnt, **held_out}.items():
        scores = run.score(records)
        told = (f"{k} {v:.2f}" for k, v in scores.items() if isinstance(v, float))
        print(f"{split:5} {len(records):4} images  {'  '.join(told)}", flush=True)
    for split, records in {"train": learnt, "test": held_out["test"]}.items():
        for number, record in enumerate(records[: given.shown], 1):
            seen = run.attention(record)
            path = Path(f"{given.which}-{split}-{number}.png")
            write_atomic(path, build_serializer(path, "strip")(seen))
            print(f"{path}: {seen.title}  ({record['captions'][0]})", flush=True)


if __name__ == "__main__":
    main()
