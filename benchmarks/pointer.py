"""What copying and coverage are worth (See et al. 2017): one `regard compare` of three models.

    python benchmarks/pointer.py headlines [--folder runs/pointer] [--steps 600]
    REGARD_MIRROR=FOLDER python benchmarks/pointer.py aeslc [--steps 3000]

Plain attention, with copying, and with copying and coverage, which is switched on for the last
fifth of the steps. `headlines` has names that are in no other document: `exact` is how many were
told right. `aeslc` is the preset `aeslc-pointer`: subjects of mails. The same command goes on.
"""

import argparse
import re
from pathlib import Path

from command import regard

from regard.config.presets import preset_paths
from regard.files import write_atomic

WAYS = {
    "plain": "copying = false\ncoverage = false",
    "copying": "coverage = false",
    "coverage": "",
}
STEPS = {"headlines": 600, "aeslc": 3000}
HEADLINES = """
task = "summarize"
seed = 1
[data]
kind = "headlines"
[model]
kind = "pointer"
dim = 64
hidden_dim = 64
[train]
steps = 1
examples_per_batch = 32
learning_rate = 0.003
validate_every = 100
save_every = 300
coverage_after = 1
"""


def configs(data: str, steps: int) -> dict[str, str]:
    """The same settings but for [model]; what has no coverage does not wait for it."""
    text = HEADLINES if data == "headlines" else preset_paths()["aeslc-pointer"].read_text("utf-8")
    text = re.sub(r"(?m)^steps = .*$", f"steps = {steps}", text)
    text = re.sub(r"(?m)^coverage_after = .*$", f"coverage_after = {steps * 4 // 5}", text)
    head = '[model]\nkind = "pointer"\n'
    return {f"{data}-{name}": text.replace(head, f"{head}{way}\n") for name, way in WAYS.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", choices=tuple(STEPS))
    parser.add_argument("--folder", type=Path, default=Path("runs/pointer"))
    parser.add_argument("--steps", type=int)
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    made = configs(given.data, given.steps or STEPS[given.data])
    for name, text in made.items():
        write_atomic(given.folder / f"{name}.toml", text.encode())
    words = [f"{name}.toml" for name in made]
    regard(given.folder, "compare", *words, "--show-attention", "--threads", str(given.threads))


if __name__ == "__main__":
    main()
