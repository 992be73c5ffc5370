"""A run: a trained model, its vocabularies and its settings, in one folder that needs nothing else.

config.toml  weights.safetensors  versions.json, and a file for each vocabulary
"""

import json
import math
import platform
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TypeVar

import safetensors
import safetensors.torch
import torch

import regard
from regard.config.load import load as load_settings
from regard.config.settings import Settings
from regard.config.table import Table
from regard.config.text import Text
from regard.config.whole import write_whole
from regard.config.write import dumps
from regard.corpora.build import build as build_corpus
from regard.corpora.corpus import Corpus, Record
from regard.tasks.loss import Loss
from regard.text.learn import train_tokeniser
from regard.text.tokeniser import Tokeniser
from regard.train.loop import Source
from regard.train.make import paced

CONFIG, WEIGHTS, VERSIONS = "config.toml", "weights.safetensors", "versions.json"
CHECKPOINTS = "checkpoints"
LEARNT = 1_000_000  # records that a vocabulary is learnt from
RUNS = {
    "classify": "regard.train.classify:ClassifyRun",
    "tag": "regard.train.tag:TagRun",
    "understand": "regard.train.tag:UnderstandRun",
    "answer": "regard.train.answer:AnswerRun",
    "pretrain": "regard.train.pretrain:PretrainRun",
    "chat": "regard.train.chat:ChatRun",
    "language": "regard.train.language:LanguageRun",
    "summarise": "regard.train.summarise:SummariseRun",
    "music": "regard.train.music:RollRun",
    "tunes": "regard.train.tunes:TuneRun",
    "image": "regard.train.image:ImageRun",
    "copy": "regard.train.bits:BitsRun",
    "recall": "regard.train.bits:BitsRun",
    "bandit": "regard.train.bandit:BanditRun",
    "fewshot": "regard.train.fewshot:FewshotRun",
    "caption": "regard.train.caption:CaptionRun",
    "fold": "regard.train.fold:FoldRun",
    "distance": "regard.train.distance:DistanceRun",
    "translate": "regard.train.translate:TranslateRun",
}
R = TypeVar("R", bound="Run")
Told = Callable[[int], None]  # hears how many more are done


class Reply(NamedTuple):
    """To one text: what people read, and all that a program may want to know, as plain data."""

    text: str
    facts: dict[str, Any]
    parts: tuple[tuple[str, str], ...] = ()  # stretches of the text with their names, if it has any
    below: tuple[str, str] | None = None  # letters, and what belongs under each of them


class Run(ABC):
    """What can be trained, asked, scored and looked into. There is one kind of it for each task."""

    kept: ClassVar[dict[str, Callable[[Path], Any]]]  # vocabularies beside the weights: how to load
    counted: ClassVar[str] = "tokens"  # what a loss is the mean of, and a log has the number of
    model: Any
    task: Any

    def __init__(self, settings: Settings, vocabularies: Mapping[str, Any]):
        torch.manual_seed(settings.seed)
        self.settings, self.vocabularies = settings, dict(vocabularies)
        self.task = self.asked()
        self.model = self.task.model

    @abstractmethod
    def asked(self) -> Any:
        """The task, with a new model in it."""

    @classmethod
    @abstractmethod
    def learn(cls, settings: Settings, corpus: Corpus) -> dict[str, Any]:
        """Vocabularies from the training data."""

    @classmethod
    def settled(cls, settings: Settings) -> Settings:
        """Settings with what they take over from elsewhere."""
        return settings

    def inherit(self) -> None:  # noqa: B027 - most have nothing to inherit
        """Weights to begin with, other than chance; for a run that is new."""

    def groups(self) -> list[dict[str, Any]]:
        """What is trained, and `rate` times as fast as the settings say; the first at full rate."""
        return paced(self.model, self.layers(), self.settings.train.rates)

    def layers(self) -> list[dict[str, Any]]:
        """The same, before the settings have named parts of the model."""
        return [{"params": [p for p in self.model.parameters() if p.requires_grad], "rate": 1.0}]

    @property
    def turn(self) -> int:
        """Steps after which something else is learnt: what was best before them counts no more."""
        return 0

    @abstractmethod
    def batches(self, corpus: Corpus) -> Source:
        """What to train on, without end."""

    @abstractmethod
    def loss(self, batch: Any, done: int) -> Loss:
        """Of a batch, after so many steps."""

    @abstractmethod
    def likelihood(self, records: Iterable[Record]) -> Loss:
        """-log p of what these records say."""

    def measured(self, metric: str, records: Sequence[Record]) -> float:
        """By the `train.metric` of the settings, on these records."""
        return float(self.score(records)[metric])

    @abstractmethod
    def score(self, records: Iterable[Record], told: Told | None = None) -> dict[str, float | str]:
        """The standard metrics of the task, with signatures where they have any."""

    @abstractmethod
    def reply(self, texts: Sequence[str], place: str = "text {}") -> list[Reply]:
        """What the model says to each text. `place` is where a number is, for messages."""

    def further(self, text: str) -> dict[str, Any]:  # noqa: ARG002 - most know nothing more
        """More facts about a text, which take time to find out: for those who want to know all."""
        return {}

    @property
    def reach(self) -> float:
        """Tokens of a text that the model has places for, its end not counted; often any number."""
        return places(self.settings.model) - 1

    @property
    def longest(self) -> int:
        """Tokens of a side, at most, in training: more is nothing that the model has learnt."""
        return int(min(self.settings.train.longest, self.reach))

    def corpus(self) -> Corpus:
        """The data that the settings name."""
        return build_corpus(self.settings.data)

    def save(self, folder: Path) -> None:
        """Everything that `load` needs, each file whole."""
        folder.mkdir(parents=True, exist_ok=True)
        for name, vocabulary in self.vocabularies.items():
            vocabulary.save(folder / f"{name}.json")
        self.save_weights(folder, dict(self.model.state_dict()))
        write_whole(folder / VERSIONS, (json.dumps(versions(), indent=1) + "\n").encode())
        write_whole(folder / CONFIG, dumps(self.settings).encode())

    def save_weights(self, folder: Path, weights: dict[str, torch.Tensor]) -> None:
        plain = {name: value.detach().clone() for name, value in weights.items()}
        write_whole(folder / WEIGHTS, safetensors.torch.save(plain))

    @classmethod
    def load(cls: type[R], folder: Path | str) -> R:
        """The run in a folder, of the kind that its settings say, which must be one of this.

        RUN/checkpoints/step-… is the run with the weights that it had after that step.
        """
        folder, weights_of = Path(folder), Path(folder) / WEIGHTS
        if folder.parent.name == CHECKPOINTS:
            check_files(folder, (WEIGHTS,))
            folder = folder.parent.parent
        check_files(folder, (CONFIG, WEIGHTS))
        settings = load_settings(folder / CONFIG)
        kind = find(settings.run)
        if not issubclass(kind, cls):
            wanted = [name for name in RUNS if issubclass(find(name), cls)]
            raise ValueError(
                f"{folder}: holds a run of task {settings.task!r}; this is for {', '.join(wanted)}"
            )
        check_files(folder, [f"{name}.json" for name in kind.kept])
        run = kind(settings, {n: read(folder / f"{n}.json") for n, read in kind.kept.items()})
        try:
            weights = safetensors.torch.load_file(weights_of)
            run.model.load_state_dict(weights)
        except (safetensors.SafetensorError, RuntimeError) as error:
            reason = " ".join(str(error).split())[:200]
            raise ValueError(f"{weights_of}: does not fit the settings ({reason})") from error
        run.model.eval()
        return run


def find(run: str) -> type[Run]:
    """The kind of run that settings ask for (`Settings.run`), imported now."""
    module, _, name = RUNS[run].partition(":")
    return getattr(import_module(module), name)


def prepare(settings: Settings, corpus: Corpus) -> Any:
    """A new run: vocabularies from the training data, fresh weights."""
    kind = find(settings.run)
    settings = kind.settled(settings)
    run = kind(settings, kind.learn(settings, corpus))
    run.inherit()
    return run


def check_files(folder: Path, names: Iterable[str]) -> None:
    for name in names:
        if not (folder / name).is_file():
            raise ValueError(f"{folder}: is not a run, there is no {name} in it")


def vocabulary(text: Text, corpus: Corpus, *fields: str) -> Tokeniser:
    """Learnt from these fields of the training data (its first million records)."""
    records = first(corpus.read("train"), LEARNT)
    return learnt(text, (record[name] for record in records for name in fields))


def learnt(text: Text, texts: Iterable[str]) -> Tokeniser:
    """A vocabulary as the settings say."""
    return train_tokeniser(
        text.kind,
        texts,
        text.size,
        lower=text.lower,
        digits=text.digits,
        normalise=text.normalise,
        min_count=text.min_count,
        apart=text.apart,
    )


def first(records: Iterable[Record], most: int) -> Iterator[Record]:
    for number, record in enumerate(records):
        if number == most:
            return
        yield record


def places(model: Table) -> float:
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
