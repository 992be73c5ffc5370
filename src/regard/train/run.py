"""A run: a trained model, its vocabularies and its settings, in one folder that needs nothing else.

config.toml  source.json  target.json  weights.safetensors  versions.json
"""

import json
import math
import platform
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch

import regard
from regard.batch.pair import Pair
from regard.config.decode import Beam, Decode, Greedy, Sample
from regard.config.load import load as load_settings
from regard.config.model import Model
from regard.config.settings import Settings
from regard.config.whole import write_whole
from regard.config.write import dumps
from regard.corpora.build import build as build_corpus
from regard.corpora.corpus import Corpus, Record
from regard.decode.beam import beam
from regard.decode.greedy import greedy
from regard.decode.penalty import rerank
from regard.decode.rules import Rules
from regard.decode.sample import Draw, sample
from regard.decode.stepper import Hypothesis
from regard.metric.language import perplexity
from regard.metric.translation import bleu, chrf, exact_match, ter
from regard.models.catalogue import build as build_model
from regard.tasks.loss import Loss
from regard.tasks.translate import Ranking, Search, Translation, Translator
from regard.text.learn import train_tokeniser
from regard.text.tokeniser import Tokeniser

CONFIG, WEIGHTS, VERSIONS = "config.toml", "weights.safetensors", "versions.json"
SIDES = ("source", "target")
SCORED = 256  # tokens of a side, at most, where likelihood is measured


class Run:
    """Settings, vocabularies and a model: what can translate, be scored and looked into."""

    def __init__(self, settings: Settings, source: Tokeniser, target: Tokeniser):
        torch.manual_seed(settings.seed)
        wanted = settings.model.model_dump(exclude={"kind"})
        sizes = {"source_size": source.size, "target_size": target.size}
        self.settings = settings
        self.model = build_model(settings.model.kind, {**wanted, **sizes})
        self.task = Translator(self.model, source, target)

    def __call__(self, text: str) -> Translation:
        """The best output for one text."""
        return self.predict([text])[0][0]

    def predict(
        self,
        texts: Sequence[str],
        decode: Decode | None = None,
        told: Callable[[int], None] | None = None,
    ) -> list[list[Translation]]:
        """The outputs for each text, best first."""
        decode = decode or self.settings.decode
        rules = rules_of(decode, int(min(decode.max_length, self.reach)))
        search, again = search_of(decode), ranking_of(decode)
        return self.task.translate(texts, search, rules, again=again, told=told)

    @property
    def reach(self) -> float:
        """Tokens of a text that the model has places for, its end not counted; often any number."""
        return places(self.settings.model) - 1

    @property
    def longest(self) -> int:
        """Tokens of a side, at most, in training: more is nothing that the model has learnt."""
        return int(min(self.settings.train.longest, self.reach))

    def score(
        self,
        records: Iterable[Record],
        told: Callable[[int], None] | None = None,
        tokenize: str = "13a",
    ) -> dict[str, float | str]:
        """BLEU (its tokeniser: `tokenize`), chrF, TER, exact match, perplexity, and signatures."""
        records = list(records)
        outputs = [best[0].text for best in self.predict([r["source"] for r in records], told=told)]
        return self.rate(records, outputs, tokenize)

    def rate(
        self, records: Sequence[Record], outputs: Sequence[str], tokenize: str = "13a"
    ) -> dict[str, float | str]:
        """What `score` says, of outputs that are there already."""
        if not records:
            raise ValueError("records are missing: there is nothing to score")
        references = [record["target"] for record in records]
        found: dict[str, float | str] = {}
        tokenized = partial(bleu, tokenize=tokenize, force=tokenize == "none")
        for name, metric in (("bleu", tokenized), ("chrf", chrf), ("ter", ter)):
            score = metric(outputs, references)
            found[name], found[f"{name}_signature"] = score.value, score.signature
        found["exact"] = exact_match(outputs, references)
        pairs = self.measurable(records)
        loss = self.task.likelihood(pairs)
        found["perplexity"] = perplexity(loss.total.item(), loss.tokens)
        found["sentences"] = len(records)
        if too_long := len(records) - len(pairs):
            found["not_in_perplexity"] = too_long
        return found

    def likelihood(self, records: Iterable[Record]) -> Loss:
        """-log p of the targets, of pairs that are not too long."""
        return self.task.likelihood(self.measurable(records))

    def measurable(self, records: Iterable[Record]) -> list[Pair]:
        most = int(min(SCORED, self.reach))
        if pairs := list(self.task.pairs(records, most)):
            return pairs
        raise ValueError(f"no pair has at most {most} tokens a side: no likelihood to measure")

    def corpus(self) -> Corpus:
        """The data that the settings name."""
        return build_corpus(self.settings.data)

    def save(self, folder: Path) -> None:
        """Everything that `load` needs, each file whole."""
        folder.mkdir(parents=True, exist_ok=True)
        for side in SIDES:
            getattr(self.task, side).save(folder / f"{side}.json")
        self.save_weights(folder, dict(self.model.state_dict()))
        write_whole(folder / VERSIONS, (json.dumps(versions(), indent=1) + "\n").encode())
        write_whole(folder / CONFIG, dumps(self.settings).encode())

    def save_weights(self, folder: Path, weights: dict[str, torch.Tensor]) -> None:
        plain = {name: value.detach().clone() for name, value in weights.items()}
        write_whole(folder / WEIGHTS, safetensors.torch.save(plain))

    @classmethod
    def load(cls, folder: Path | str) -> "Run":
        folder = Path(folder)
        for name in (CONFIG, WEIGHTS, *(f"{side}.json" for side in SIDES)):
            if not (folder / name).is_file():
                raise ValueError(f"{folder}: is not a run, there is no {name} in it")
        settings = load_settings(folder / CONFIG)
        run = cls(settings, *(Tokeniser.load(folder / f"{side}.json") for side in SIDES))
        try:
            weights = safetensors.torch.load_file(folder / WEIGHTS)
            run.model.load_state_dict(weights)
        except (safetensors.SafetensorError, RuntimeError) as error:
            reason = " ".join(str(error).split())[:200]
            raise ValueError(f"{folder / WEIGHTS}: does not fit the settings ({reason})") from error
        run.model.eval()
        return run


def prepare(settings: Settings, corpus: Corpus, most: int = 1_000_000) -> Run:
    """A new run: vocabularies from the training data (its first million pairs), fresh weights."""
    text = settings.text

    def side(*names: str) -> Tokeniser:
        return train_tokeniser(
            text.kind,
            (record[name] for record in first(corpus.read("train"), most) for name in names),
            text.size,
            lower=text.lower,
            normalise=text.normalise,
            min_count=text.min_count,
        )

    if text.joint:
        both = side(*SIDES)
        return Run(settings, both, both)
    return Run(settings, side("source"), side("target"))


def first(records: Iterable[Record], most: int) -> Iterable[Record]:
    for number, record in enumerate(records):
        if number == most:
            return
        yield record


def search_of(decode: Decode) -> Search:
    """A search as the settings describe it; each input draws with a seed of its own."""
    match decode:
        case Greedy():
            return lambda model, memory, seeds, rules: greedy(model, memory, len(seeds), rules)
        case Beam():
            options = {
                "width": decode.width,
                "n_best": decode.width if decode.coverage_penalty else decode.n_best,
                "alpha": decode.length_penalty,
                "patience": decode.patience,
            }
            return lambda model, memory, seeds, rules: beam(
                model, memory, len(seeds), **options, rules=rules
            )
        case Sample():
            draw = Draw(decode.temperature, decode.top_k, decode.top_p, decode.min_p)
            first = decode.seed * 1_000_003
            return lambda model, memory, seeds, rules: sample(
                model, memory, [first + seed for seed in seeds], draw, rules=rules
            )


def ranking_of(decode: Decode) -> Ranking | None:
    """Of all that a beam found, the n best by how much of the source was looked at, too."""
    if not isinstance(decode, Beam) or not decode.coverage_penalty:
        return None

    def ranked(
        found: list[list[Hypothesis]], weights: list[list[torch.Tensor]]
    ) -> list[list[Hypothesis]]:
        alpha, beta = decode.length_penalty, decode.coverage_penalty
        return [best[: decode.n_best] for best in rerank(found, weights, alpha=alpha, beta=beta)]

    return ranked


def rules_of(decode: Decode, most: int) -> Rules:
    return Rules(most, min(decode.min_length, most), decode.no_repeat_ngram)


def places(model: Model) -> float:
    """Positions that are known to a model which has learnt each by itself; else there is no end."""
    by_place = getattr(model, "positions", None) == "learned"
    limited = by_place or getattr(model, "score", None) == "location"
    return float(getattr(model, "longest", math.inf)) if limited else math.inf


def versions() -> dict[str, Any]:
    return {
        "regard": regard.__version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "threads": torch.get_num_threads(),
    }
