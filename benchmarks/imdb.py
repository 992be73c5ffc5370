"""Documents of many sentences: HAN beside its own averages, and beside one flat row of words.

    REGARD_MIRROR=FOLDER python benchmarks/imdb.py [--folder runs/imdb] [--steps 600]

Reviews of IMDB's sample, 4,540 to train on. In `mean` nothing looks: words and sentences are
averaged (the HN-AVE of Yang et al. 2016). `flat` reads the first 400 words as one row and looks at
them all. Three seeds each in one `regard compare`; the same command goes on.
"""

import argparse
from pathlib import Path

from command import regard

from regard.files import write_atomic

COMMON = """
task = "classify"
data = { kind = "public", name = "imdb_sample" }
text = { kind = "words", size = 20000, lower = true, min_count = 3 }
head = { dropout = 0.5 }
[train]
tokens_per_batch = 6000
max_tokens = 400
learning_rate = 0.002
validate_every = 100
save_every = 200
metric = "accuracy"
schedule = { kind = "cosine", warmup = 50, floor = 0.05 }
"""
MODELS = {
    "han": 'kind = "han"\ndim = 100\nhidden_dim = 50',
    "mean": 'kind = "han"\ndim = 100\nhidden_dim = 50\npooling = "mean"',
    "flat": 'kind = "birnn"\ndim = 100\nhidden_dim = 50\ndropout = 0.3',
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path("runs/imdb"))
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    for name, model in MODELS.items():
        write_atomic(given.folder / f"{name}.toml", f"{COMMON}\n[model]\n{model}\n".encode())
    names = [f"{name}.toml" for name in MODELS]
    options = ["--sweep", "seed=1,2,3", "--threads", str(given.threads)]
    regard(given.folder, "compare", *names, f"train.steps={given.steps}", *options)


if __name__ == "__main__":
    main()
