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
from regard.config.base import Config
from regard.config.dump import dumps
from regard.config.load import load as load_settings
from regard.config.settings import Settings
from regard.config.text import TextConfig
from regard.data.build import build_corpus as build_corpus
from regard.data.corpus import Corpus, Record
from regard.files import write_atomic
from regard.tasks.loss import Loss
from regard.text.tokenizer import Tokenizer
from regard.text.train import train_tokenizer
from regard.training.build import with_rate_multipliers
from regard.training.loop import Source

CONFIG_FILE, WEIGHTS_FILE, VERSIONS_FILE = "config.toml", "weights.safetensors", "versions.json"
CHECKPOINTS_FOLDER = "checkpoints"
MAX_VOCABULARY_RECORDS = 1_000_000  # records that a vocabulary is learnt from
RUN_CLASSES = {
    "classify": "regard.train.classify:ClassifyRun",
    "tag": "regard.train.tag:TagRun",
    "understand": "regard.train.tag:UnderstandRun",
    "answer": "regard.train.answer:AnswerRun",
    "pretrain": "regard.train.pretrain:PretrainRun",
    "chat": "regard.train.chat:ChatRun",
    "language": "regard.train.language:LanguageRun",
    "summarize": "regard.train.summarize:SummarizeRun",
    "music": "regard.train.music:PianoRollRun",
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
ProgressCallback = Callable[[int], None]  # hears how many more are done


class Prediction(NamedTuple):
    """To one text: what people read, and all that a program may want to know, as plain data."""

    text: str
    data: dict[str, Any]
    spans: tuple[tuple[str, str], ...] = ()  # stretches of the text with their names, if it has any
    annotation: tuple[str, str] | None = None  # letters, and what belongs under each of them


class Run(ABC):
    """What can be trained, asked, scored and looked into. There is one kind of it for each task."""

    vocabulary_loaders: ClassVar[
        dict[str, Callable[[Path], Any]]
    ]  # vocabularies beside the weights: how to load
    unit: ClassVar[str] = "tokens"  # what a loss is the mean of, and a log has the number of
    model: Any
    task: Any

    def __init__(self, settings: Settings, vocabularies: Mapping[str, Any]):
        torch.manual_seed(settings.seed)
        self.settings, self.vocabularies = settings, dict(vocabularies)
        self.task = self.build_task()
        self.model = self.task.model

    @abstractmethod
    def build_task(self) -> Any:
        """The task, with a new model in it."""

    @classmethod
    @abstractmethod
    def build_vocabularies(cls, settings: Settings, corpus: Corpus) -> dict[str, Any]:
        """Vocabularies from the training data."""

    @classmethod
    def resolve_settings(cls, settings: Settings) -> Settings:
        """Settings with what they take over from elsewhere."""
        return settings

    def load_pretrained(self) -> None:  # noqa: B027 - most have nothing to inherit
        """Weights to begin with, other than chance; for a run that is new."""

    def parameter_groups(self) -> list[dict[str, Any]]:
        """What is trained, and `rate` times as fast as the settings say; the first at full rate."""
        return with_rate_multipliers(
            self.model, self.base_parameter_groups(), self.settings.train.rate_multipliers
        )

    def base_parameter_groups(self) -> list[dict[str, Any]]:
        """The same, before the settings have named parts of the model."""
        return [{"params": [p for p in self.model.parameters() if p.requires_grad], "rate": 1.0}]

    @property
    def best_resets_after(self) -> int:
        """Steps after which something else is learnt: what was best before them counts no more."""
        return 0

    @abstractmethod
    def batches(self, corpus: Corpus) -> Source:
        """What to train on, without end."""

    @abstractmethod
    def loss(self, batch: Any, steps_done: int) -> Loss:
        """Of a batch, after so many steps."""

    @abstractmethod
    def negative_log_likelihood(self, records: Iterable[Record]) -> Loss:
        """-log p of what these records say."""

    def validation_metric(self, metric: str, records: Sequence[Record]) -> float:
        """By the `train.metric` of the settings, on these records."""
        return float(self.score(records)[metric])

    @abstractmethod
    def score(
        self, records: Iterable[Record], on_progress: ProgressCallback | None = None
    ) -> dict[str, float | str]:
        """The standard metrics of the task, with signatures where they have any."""

    @abstractmethod
    def predict_lines(
        self, lines: Sequence[str], location_format: str = "text {}"
    ) -> list[Prediction]:
        """What the model says to each text. `place` is where a number is, for messages."""

    def details(self, text: str) -> dict[str, Any]:  # noqa: ARG002 - most know nothing more
        """More facts about a text, which take time to find out: for those who want to know all."""
        return {}

    @property
    def max_positions(self) -> float:
        """Tokens of a text that the model has places for, its end not counted; often any number."""
        return position_limit(self.settings.model) - 1

    @property
    def max_tokens(self) -> int:
        """Tokens of a side, at most, in training: more is nothing that the model has learnt."""
        return int(min(self.settings.train.max_tokens, self.max_positions))

    def corpus(self) -> Corpus:
        """The data that the settings name."""
        return build_corpus(self.settings.data)

    def save(self, folder: Path) -> None:
        """Everything that `load` needs, each file whole."""
        folder.mkdir(parents=True, exist_ok=True)
        for name, vocabulary in self.vocabularies.items():
            vocabulary.save(folder / f"{name}.json")
        self.save_weights(folder, dict(self.model.state_dict()))
        write_atomic(folder / VERSIONS_FILE, (json.dumps(versions(), indent=1) + "\n").encode())
        write_atomic(folder / CONFIG_FILE, dumps(self.settings).encode())

    def save_weights(self, folder: Path, weights: dict[str, torch.Tensor]) -> None:
        tensors = {name: value.detach().clone() for name, value in weights.items()}
        write_atomic(folder / WEIGHTS_FILE, safetensors.torch.save(tensors))

    @classmethod
    def load(cls: type[R], folder: Path | str) -> R:
        """The run in a folder, of the kind that its settings say, which must be one of this.

        RUN/checkpoints/step-… is the run with the weights that it had after that step.
        """
        folder, weights_path = Path(folder), Path(folder) / WEIGHTS_FILE
        if folder.parent.name == CHECKPOINTS_FOLDER:
            check_run_files(folder, (WEIGHTS_FILE,))
            folder = folder.parent.parent
        check_run_files(folder, (CONFIG_FILE, WEIGHTS_FILE))
        settings = load_settings(folder / CONFIG_FILE)
        run_class = find_run_class(settings.run_kind)
        if not issubclass(run_class, cls):
            accepted_runs = [name for name in RUN_CLASSES if issubclass(find_run_class(name), cls)]
            raise ValueError(
                f"{folder}: holds a run of task {settings.task!r}; this is for "
                f"{', '.join(accepted_runs)}"
            )
        check_run_files(folder, [f"{name}.json" for name in run_class.vocabulary_loaders])
        run = run_class(
            settings,
            {
                n: load_vocabulary(folder / f"{n}.json")
                for n, load_vocabulary in run_class.vocabulary_loaders.items()
            },
        )
        try:
            weights = safetensors.torch.load_file(weights_path)
            run.model.load_state_dict(weights)
        except (safetensors.SafetensorError, RuntimeError) as error:
            reason = " ".join(str(error).split())[:200]
            raise ValueError(f"{weights_path}: does not fit the settings ({reason})") from error
        run.model.eval()
        return run


def find_run_class(run_name: str) -> type[Run]:
    """The kind of run that settings ask for (`Settings.run`), imported now."""
    module, _, class_name = RUN_CLASSES[run_name].partition(":")
    return getattr(import_module(module), class_name)


def build_run(settings: Settings, corpus: Corpus) -> Any:
    """A new run: vocabularies from the training data, fresh weights."""
    run_class = find_run_class(settings.run_kind)
    settings = run_class.resolve_settings(settings)
    run = run_class(settings, run_class.build_vocabularies(settings, corpus))
    run.load_pretrained()
    return run


def check_run_files(folder: Path, names: Iterable[str]) -> None:
    for name in names:
        if not (folder / name).is_file():
            raise ValueError(f"{folder}: is not a run, there is no {name} in it")


def train_tokenizer_on_corpus(config: TextConfig, corpus: Corpus, *fields: str) -> Tokenizer:
    """Learnt from these fields of the training data (its first million records)."""
    records = take(corpus.read("train"), MAX_VOCABULARY_RECORDS)
    return train_tokenizer_on_texts(config, (record[name] for record in records for name in fields))


def train_tokenizer_on_texts(config: TextConfig, texts: Iterable[str]) -> Tokenizer:
    """A vocabulary as the settings say."""
    return train_tokenizer(
        config.kind,
        texts,
        config.size,
        lower=config.lower,
        zero_digits=config.zero_digits,
        normalize=config.normalize,
        min_count=config.min_count,
        split_punctuation=config.split_punctuation,
    )


def take(records: Iterable[Record], limit: int) -> Iterator[Record]:
    for index, record in enumerate(records):
        if index == limit:
            return
        yield record


def position_limit(model_config: Config) -> float:
    """Positions that are known to a model which has learnt each by itself; else there is no end."""
    has_learned_positions = getattr(model_config, "positions", None) == "learned"
    is_limited = has_learned_positions or getattr(model_config, "score", None) == "location"
    return float(getattr(model_config, "max_positions", math.inf)) if is_limited else math.inf


def versions() -> dict[str, Any]:
    return {
        "regard": regard.__version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "threads": torch.get_num_threads(),
    }
