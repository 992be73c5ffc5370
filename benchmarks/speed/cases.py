"""The cases of the benchmark, and the engines that take part in each.

An engine whose name begins with "regard" is ours. The second word of its name, as in "regard auto",
is the end of the names of its rows: `A.beam5.int8.auto`.
"""

from collections.abc import Mapping
from typing import NamedTuple

OURS, AUTO = "regard", "regard auto"
UNITS_TO_LOWER = ("s", "MB")  # less is better
Options = Mapping[str, object]


class Case(NamedTuple):
    """One measurement: what is done, by which engines, and the unit of the result.

    `options` goes to every worker. An engine is a name and options of its own.
    """

    name: str
    options: Options
    engines: Mapping[str, Options]
    unit: str
    rounds: int = 5


CTRANSLATE2: Mapping[str, Options] = {
    "ctranslate2 2x1": {"replicas": 2, "threads": 1},
    "ctranslate2 1x2": {"replicas": 1, "threads": 2},
}
GREEDY32: Options = {"work": "translate", "batch": 32, "width": 1, "sentences": 64}
BEAM5: Options = {"work": "translate", "batch": 8, "width": 5, "sentences": 16}
BATCH1: Options = {"work": "translate", "batch": 1, "width": 1, "sentences": 8}
BATCH16: Options = {"work": "encode", "batch": 16, "length": 128}


def translation(name: str, options: Options, precision: str) -> Case:
    """Return a case of decoding with a Transformer of the base shape, 25 tokens for 25."""
    engines: dict[str, Options] = {OURS: {}, AUTO: {}, **CTRANSLATE2}
    if precision == "float32":
        engines["transformers"] = {}
    return Case(f"A.{name}.{precision}", {**options, "precision": precision}, engines, "tokens/s")


def continuation(batch: int, tokens: int) -> Case:
    engines: dict[str, Options] = {OURS: {}, AUTO: {}, "ctranslate2": {"threads": 2}}
    options = {"work": "continue", "batch": batch, "prompt": 32, "tokens": tokens}
    return Case(f"B.batch{batch}", options, {**engines, "transformers": {}}, "tokens/s", rounds=3)


def encoding(name: str, options: Options) -> Case:
    engines: dict[str, Options] = {OURS: {}, "ctranslate2": {"threads": 2}, "transformers": {}}
    return Case(name, options, engines, "texts/s")


def recurrent_decoding(name: str, options: Options, precision: str = "float32") -> Case:
    """Return a case of decoding with RNNsearch; JoeyNMT has float32 only."""
    options = {**options, "work": "decode-recurrent", "precision": precision}
    engines: dict[str, Options] = {OURS: {}, "torch": {}}
    if precision == "float32":
        engines["joeynmt"] = {}
    return Case(f"E.{name}", options, engines, "tokens/s")


def command(run: str, engine: str = "built-in") -> Options:
    """Return options of a cold `regard predict`."""
    return {"run": run, "arguments": ["--engine", engine]}


def first_line(name: str, options: Options) -> Case:
    """Return a case of the time from the start of a process to its first line."""
    engines = {OURS: options, "import torch": {"code": "import torch; print('imported')"}}
    return Case(f"H.{name}", {"work": "command", "input": "line"}, engines, "s", rounds=7)


def unused_checks(name: str, options: Options) -> Case:
    """Return a case that compares our code with itself, without the checks for observers."""
    engines: dict[str, Options] = {OURS: {}, "no checks": {"checks": False}}
    return Case(f"I.{name}", options, engines, "tokens/s" if "width" in options else "texts/s", 9)


CASES = [
    *(
        translation(name, options, precision)
        for name, options in (("greedy32", GREEDY32), ("beam5", BEAM5), ("batch1", BATCH1))
        for precision in ("float32", "int8")
    ),
    continuation(1, 128),
    continuation(8, 64),
    encoding("C.batch16", BATCH16),
    encoding("C.batch1", {**BATCH16, "batch": 1}),
    Case(
        "D.tiny",
        {"work": "train", "size": "tiny", "batch": 64, "length": 32},
        {OURS: {}, "transformers": {}, "torch": {}},
        "tokens/s",
    ),
    Case(
        "D.base",
        {"work": "train", "size": "base", "batch": 16, "length": 32},
        {OURS: {}, "transformers": {}},
        "tokens/s",
        rounds=3,
    ),
    Case(
        "E.train",
        {"work": "train-recurrent", "batch": 64, "length": 25},
        {OURS: {}, "torch": {}, "joeynmt": {}},
        "tokens/s",
    ),
    recurrent_decoding("greedy", GREEDY32),
    recurrent_decoding("beam5", BEAM5),
    recurrent_decoding("greedy.int8", GREEDY32, "int8"),
    recurrent_decoding("beam5.int8", BEAM5, "int8"),
    Case(
        "F.multi30k",
        {"work": "command", "input": "test"},
        {
            OURS: command("multi30k"),
            AUTO: command("multi30k", "auto"),
            "ctranslate2 2x1": {"script": "translate_file.py", "arguments": ["2", "1"]},
            "ctranslate2 1x2": {"script": "translate_file.py", "arguments": ["1", "2"]},
        },
        "s",
        rounds=3,
    ),
    translation("greedy32", GREEDY32, "float32")._replace(name="G.greedy32", unit="MB", rounds=1),
    encoding("G.batch16", BATCH16)._replace(unit="MB", rounds=1),
    first_line("help", {"arguments": ["--help"]}),
    *(
        first_line(name, command(name.partition(".")[0], engine))
        for name, engine in (
            ("transformer", "built-in"),
            ("transformer.ctranslate2", "ctranslate2"),
            ("transformer.auto", "auto"),
            ("rnnsearch", "built-in"),
            ("rnnsearch.auto", "auto"),
        )
    ),
    unused_checks("greedy32", {**GREEDY32, "precision": "float32"}),
    unused_checks("batch16", BATCH16),
]
