"""The cases of the benchmark, and the engines that take part in each."""

from typing import NamedTuple

OURS = "regard"


class Case(NamedTuple):
    """One measurement: what is done, by which engines, and the unit of the result.

    `options` goes to every worker. An engine is a name and options of its own.
    """

    name: str
    options: dict[str, object]
    engines: dict[str, dict[str, object]]
    unit: str
    rounds: int = 5


def translation(name: str, precision: str, batch: int, width: int, sentences: int) -> Case:
    """Return a case of decoding with a Transformer of the base shape, 25 tokens for 25."""
    engines: dict[str, dict[str, object]] = {
        OURS: {},
        "ctranslate2 2x1": {"replicas": 2, "threads": 1},
        "ctranslate2 1x2": {"replicas": 1, "threads": 2},
    }
    if precision == "float32":
        engines["transformers"] = {}
    options = {"work": "translate", "precision": precision}
    sizes = {"batch": batch, "width": width, "sentences": sentences}
    return Case(f"A.{name}.{precision}", {**options, **sizes}, engines, "tokens/s")


CASES = [
    *(
        translation(name, precision, batch, width, sentences)
        for name, batch, width, sentences in (
            ("greedy32", 32, 1, 64),
            ("beam5", 8, 5, 16),
            ("batch1", 1, 1, 8),
        )
        for precision in ("float32", "int8")
    ),
    *(
        Case(
            f"B.batch{batch}",
            {"work": "continue", "batch": batch, "prompt": 32, "tokens": 128 if batch == 1 else 64},
            {OURS: {}, "ctranslate2": {"threads": 2}, "transformers": {}},
            "tokens/s",
            rounds=3,
        )
        for batch in (1, 8)
    ),
    *(
        Case(
            f"C.batch{batch}",
            {"work": "encode", "batch": batch, "length": 128},
            {OURS: {}, "ctranslate2": {"threads": 2}, "transformers": {}},
            "texts/s",
        )
        for batch in (16, 1)
    ),
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
    ),
    Case(
        "E.train",
        {"work": "train-recurrent", "batch": 64, "length": 25},
        {OURS: {}, "torch": {}, "joeynmt": {}},
        "tokens/s",
    ),
    *(
        Case(
            f"E.{name}",
            {"work": "decode-recurrent", "batch": 32 if width == 1 else 8, "width": width},
            {OURS: {}, "torch": {}, "joeynmt": {}},
            "tokens/s",
        )
        for name, width in (("greedy", 1), ("beam5", 5))
    ),
]
