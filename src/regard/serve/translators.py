"""Translation by the served runs, for every API that translates."""

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from fastapi import Request

from regard.serve.limits import ApiError, Limits
from regard.serve.served import ServedRun
from regard.serve.work import finish
from regard.tasks.base import Prediction
from regard.tasks.generation import TextPrediction


class DetectedLanguage(NamedTuple):
    """A language code, and how sure the detection is, from 0 to 1."""

    code: str
    confidence: float


class Translators:
    """The served runs that translate, by their pair of languages."""

    def __init__(self, runs: Mapping[str, ServedRun]):
        self.runs = {
            served.languages: served
            for served in runs.values()
            if served.languages and "translation" in served.apis()
        }

    @property
    def sources(self) -> list[str]:
        return list(dict.fromkeys(source for source, _ in self.runs))

    def targets(self, source: str) -> list[str]:
        return [target for pair_source, target in self.runs if pair_source == source]

    def find(self, source: str, target: str) -> ServedRun:
        if (source, target) not in self.runs:
            raise ApiError(400, f"{source} to {target} is not supported")
        return self.runs[source, target]

    def detect(self, text: str) -> list[DetectedLanguage]:
        """Return the likely languages of a text among those that can be translated."""
        from py3langid import rank

        scores = {code: log_prob for code, log_prob in rank(text) if code in self.sources}
        if not scores:
            return [DetectedLanguage(code, 1 / len(self.sources)) for code in self.sources]
        best = max(scores.values())
        shares = {code: math.exp(log_prob - best) for code, log_prob in scores.items()}
        total = sum(shares.values())
        return [DetectedLanguage(code, share / total) for code, share in shares.items()]


async def translate_text(
    request: Request, served: ServedRun, text: str, count: int, limits: Limits
) -> list[str]:
    """Return translations of one text, best first; paragraphs are translated one by one."""
    overrides = []
    if count > 1:
        overrides = ["decode.kind=beam", f"decode.width={max(5, count)}", f"decode.n_best={count}"]
    lines = text.split("\n")
    records = [served.to_record(line, "q") for line in lines if line.strip()]
    if not records:
        return [text] * count
    run = served.variant(overrides)
    predictions = iter(await finish(request, limits, served.batcher.predict(run, records)))
    ranked = [outputs_of(next(predictions)) if line.strip() else [line] for line in lines]
    return [
        "\n".join(outputs[min(rank, len(outputs) - 1)] for outputs in ranked)
        for rank in range(count)
    ]


def outputs_of(prediction: Prediction) -> list[str]:
    if isinstance(prediction, TextPrediction) and prediction.outputs:
        return [output.text for output in prediction.outputs]
    return [prediction.text]


def word_links(served: ServedRun, source: str, target: str) -> str:
    """Return links of words by their characters, such as "0:4-0:3 6:9-5:8"; both ends count."""
    aligner = served.run.task.aligner() if served.run.task.has_attention() else None
    if aligner is None or "\n" in source or not source.strip() or not target.strip():
        return ""
    [[links]] = aligner.links([(source, target)], [aligner.default_selection()])
    source_words, target_words = (
        [(match.start(), match.end() - 1) for match in re.finditer(r"\S+", text)]
        for text in (source, target)
    )
    return " ".join(
        "{}:{}-{}:{}".format(*source_words[a], *target_words[b])
        for a, b in sorted(links)
        if a < len(source_words) and b < len(target_words)
    )


def language_name(code: str) -> str:
    """Return the English name of a language code, or the code itself."""
    from babel import Locale, UnknownLocaleError

    try:
        return Locale.parse(code, sep="-").get_display_name("en") or code
    except (UnknownLocaleError, ValueError):
        return code


def best_language(translators: Translators, text: str) -> DetectedLanguage:
    found = translators.detect(text)
    if not found:
        raise ApiError(400, "no run of this server translates")
    return found[0]


def check_size(texts: Sequence[str], max_texts: int, max_characters: int) -> None:
    if len(texts) > max_texts:
        raise ApiError(400, f"{len(texts)} texts; at most {max_texts} at once")
    if sum(map(len, texts)) > max_characters:
        raise ApiError(400, f"more than {max_characters:,} characters")


async def read_json(request: Request) -> object:
    try:
        return await request.json()
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError):
        raise ApiError(400, "the body is not JSON") from None
