"""Runs for the commands that start cold; each is made once, in the folder of the benchmark.

"multi30k" is the preset of this name from German to English, after 400 steps: enough for outputs of
the usual length. Its data come from the cache of `regard`, or from REGARD_MIRROR. "transformer" and
"rnnsearch" have random weights.
"""

import subprocess
import sys
from pathlib import Path

LINE = "one two three\n"
SIZES = {
    "transformer": {"dim": 256, "heads": 4, "layers": 3},
    "rnnsearch": {"dim": 256, "hidden_dim": 256},
}
WORDS, OUTPUT_LENGTH = 10_000, 8
MULTI30K_SETTINGS = (
    "data.source=de",
    "data.target=en",
    "train.steps=400",
    "train.schedule.warmup=100",
    "train.validate_every=400",
    "train.save_every=400",
    "train.keep_checkpoints=1",
    "train.average_checkpoints=1",
)


def run_regard(*arguments: str) -> None:
    """Call `regard`; its messages go to standard error, as those of all workers."""
    command = [sys.executable, "-m", "regard", *arguments]
    subprocess.run(command, check=True, stdout=sys.stderr)


def prepared_run(name: str, files: Path) -> Path:
    """Return the folder of a run, which is trained or built at its first use."""
    folder = files / f"{name}-run"
    if name == "multi30k":
        mark = folder.with_suffix(".trained")
        if not mark.exists():  # the same command continues a training that was interrupted
            run_regard("train", "multi30k-transformer", *MULTI30K_SETTINGS, "--run", str(folder))
            mark.touch()
    elif not (folder / "config.toml").exists():
        build_run(name, folder)
    return folder


def build_run(kind: str, folder: Path) -> None:
    """Write a run with random weights, whose outputs have a few words."""
    from regard.run import Run
    from regard.tasks.load import resolve_settings
    from regard.text.train import train_tokenizer

    settings = resolve_settings(
        {
            "task": "translate",
            "data": {"kind": "files", "train": "pairs.tsv"},
            "model": {"kind": kind, **SIZES[kind]},
            "decode": {"max_length": OUTPUT_LENGTH},
        }
    )
    texts = [LINE, *(f"w{number}" for number in range(WORDS))]
    words = train_tokenizer("words", texts, WORDS)
    Run(settings, {"source": words, "target": words}).save(folder)


def converted_run(name: str, files: Path) -> Path:
    """Return the folder of a run in the format of CTranslate2."""
    folder = files / f"{name}-ctranslate2"
    if not (folder / "model.bin").exists():
        run = prepared_run(name, files)
        run_regard("export", str(run), str(folder), "--to", "ctranslate2")
    return folder


def input_file(name: str, files: Path) -> Path:
    """Return a file of inputs: one "line", or the 1,000 German sentences of "test"."""
    path = files / f"{name}.txt"
    if not path.exists():
        path.write_text(LINE if name == "line" else test_sentences())
    return path


def test_sentences() -> str:
    from regard.config.data.text_pairs import PublicTranslationDataConfig
    from regard.data.build import build_corpus

    config = PublicTranslationDataConfig(name="multi30k_tok", source="de", target="en")
    return "".join(f"{record['source']}\n" for record in build_corpus(config).read("test"))
