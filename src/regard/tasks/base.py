"""The contract of a task: one question asked of a model.

    records -> examples -> batch -> loss            training
    line -> record -> prediction -> metrics         inference
    record -> attention map, text for a terminal    inspection

A `Task` holds a model, its vocabularies and flat parameters; it never sees settings. The
`TaskBuilder` of the same folder reads them. `tasks/catalogue.py` lists all tasks.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Generic,
    Literal,
    NamedTuple,
    Protocol,
    TypeVar,
    runtime_checkable,
)

import torch
from torch import Tensor, nn

from regard.attention.core import Attention
from regard.attention.observe import Edit, is_observed, named_attentions
from regard.batching.batches import Batches
from regard.batching.device import device_of, move_to_device
from regard.batching.example import SizedT
from regard.batching.source import BatchSource
from regard.batching.store import store_examples
from regard.config.settings import Settings
from regard.data.corpus import Corpus, Record
from regard.data.database import Database
from regard.data.formats.images import Pixels
from regard.decoding.listen import listen
from regard.decoding.replicas import replica_count
from regard.errors import InputError
from regard.files import JsonObject
from regard.models.protocols import Model
from regard.tasks.comparison import Comparison
from regard.tasks.doctor.counts import MemoryProbe, Progress
from regard.tasks.loss import Loss
from regard.text.labels import Labels
from regard.text.train import train_tokenizer
from regard.view.attention_map import AttentionMap
from regard.view.terminal import Surface

if TYPE_CHECKING:
    from regard.tasks.alignment import Aligner
    from regard.tasks.exportable import ExportableHead

ExampleT = TypeVar("ExampleT")
BatchT = TypeVar("BatchT")
ModelT = TypeVar("ModelT", bound=Model)
T = TypeVar("T")
SettingsT = TypeVar("SettingsT", bound=Settings)

Metrics = dict[str, float | str]
ProgressCallback = Callable[[int], None]
"""Called with the number of records that were finished since the last call."""
TextCallback = Callable[[str], None]
"""Called with a text as far as it is written."""
FieldValue = str | list[str] | Pixels
"""The value of an input field: a text, a list of texts, or the pixels of an image."""


@runtime_checkable
class RunAsset(Protocol):
    """A file of a run beside its weights: a tokenizer, the names of labels, a database."""

    def save(self, path: Path) -> None: ...


Vocabularies = Mapping[str, RunAsset]
"""The assets of a run by name; NAME is kept in NAME.json."""
VocabularyLoader = Callable[[Path], RunAsset]


@dataclass(frozen=True)
class Prediction:
    """The answer of a model to one record. Subclasses add fields and extend `as_dict`.

    >>> import regard
    >>> prediction = regard.load("runs/numbers")("one two")
    >>> prediction.as_dict()["text"] == prediction.text
    True
    """

    text: str

    def as_dict(self) -> JsonObject:
        """Return plain data for `--json` and the HTTP server."""
        return {"text": self.text}

    @property
    def spans(self) -> tuple[tuple[str, str], ...]:
        """Parts of the text with their labels, for a terminal to highlight; usually none."""
        return ()

    @property
    def annotation(self) -> tuple[str, str] | None:
        """A sequence, and a symbol for each of its letters to be printed below it."""
        return None


class InputField(NamedTuple):
    """One part of an input, as a form of the web page and the HTTP API show it.

    `name` is the key of a record. A "list" is a list of texts, an "image" a picture of `size`
    (height, width, channels). "chords" are a JSON list of lists of MIDI pitches, a "tune" is ABC
    notation, and "actions" are words `ACTION:REWARD`.
    """

    name: str = "text"
    label: str = "Text"
    kind: Literal["text", "lines", "list", "image", "chords", "tune", "actions"] = "text"
    example: str = ""
    is_required: bool = True
    size: tuple[int, int, int] | None = None
    action_count: int | None = None


class ParameterGroup(NamedTuple):
    """Parameters that are trained at `rate` times the learning rate, with weight decay or not."""

    parameters: list[nn.Parameter]
    rate: float = 1.0
    decays: bool = True


@dataclass(frozen=True)
class BatchOptions:
    """Sizes and order of training batches; one of the two budgets is set."""

    tokens_per_batch: int | None
    examples_per_batch: int | None
    seed: int
    shuffle_buffer: int = 10_000  # records that a stream is shuffled within


class Readout(NamedTuple):
    """One record as ids, the output of the model, and the output's log-probability for any ids."""

    ids: list[int]
    tokens: list[str]
    removable: range  # positions that are no special tokens
    output: str
    log_prob: Callable[[Sequence[int]], Tensor]
    attentions: tuple[str, ...]
    predict_class: Callable[[Sequence[int]], int] | None = None


class Task(ABC, Generic[ExampleT, BatchT, ModelT]):
    """A model with its vocabularies: examples, loss, predictions, metrics and attention maps.

    Subclass it to add a task; CONTRIBUTING.md shows how. A run has its task in `run.task`.

    >>> import regard
    >>> task = regard.load("runs/numbers").task
    >>> task.parse("one two", "line 1")
    {'source': 'one two'}
    """

    name: ClassVar[str]
    unit: ClassVar[str] = "tokens"  # what Loss.count counts
    example_unit: ClassVar[str] = "texts"  # what `score` counts
    accepts_target: ClassVar[bool] = False  # whether `attention_map` can show a given output
    accepts_prefix: ClassVar[bool] = False  # whether the `prefix` of a record begins its output
    accepts_links: ClassVar[bool] = False  # whether `forced_attention` can force links of words
    accepts_layer: ClassVar[bool] = False  # whether `render` can show one layer
    decodes_in_replicas: ClassVar[bool] = False  # whether several batches are decoded at once
    best_resets_after: int = 0  # step after which the objective changes and the best score restarts
    model: ModelT
    replicas: int | None = None  # batches that are predicted at once; None: one for each core
    fields: tuple[str, ...] = ("text",)  # of a record, which hold text
    input_fields: tuple[InputField, ...] = (InputField(),)  # of forms and requests
    packed: bool = True  # whether examples hold ids and numbers only
    streamed: bool = True  # whether an example needs its own record only

    @property
    def device(self) -> torch.device:
        """Return the device of the model."""
        return device_of(list(islice(self.model.parameters(), 1)))

    def to_device(self, inputs: T) -> T:
        """Return inputs of the model, such as a batch, on the device of the model."""
        return move_to_device(inputs, self.device)

    # --- training

    @abstractmethod
    def examples(self, records: Iterable[Record]) -> Iterator[ExampleT]:
        """Convert records to examples; those that are too long are cut or left out."""

    @abstractmethod
    def collate(self, examples: Sequence[ExampleT]) -> BatchT:
        """Return one padded batch."""

    @abstractmethod
    def loss(self, batch: BatchT, step: int) -> Loss:
        """Return the training loss of a batch after `step` optimizer steps."""

    @abstractmethod
    def negative_log_likelihood(self, records: Iterable[Record]) -> Loss:
        """Return -log p of the targets of these records, in evaluation mode."""

    @abstractmethod
    def batches(self, corpus: Corpus, options: BatchOptions) -> BatchSource[BatchT]:
        """Return an endless source of training batches whose position can be saved."""

    def parameter_groups(self) -> list[ParameterGroup]:
        """Return the parameters to train, by learning rate; the first group has the full rate."""
        return [ParameterGroup([p for p in self.model.parameters() if p.requires_grad])]

    def compile(self) -> None:
        """Compile the parts of the model that training runs."""
        raise InputError(f"train.compile does not support the task {self.name}")

    # --- inference

    @abstractmethod
    def parse(self, line: str, location: str) -> Record:
        """Convert a line of input to a record; `location` stands in error messages."""

    def to_record(self, values: Mapping[str, FieldValue], location: str) -> Record:
        """Convert the values of the input fields to a record, after the checks of `parse`."""
        texts = list[str]()
        for field in self.input_fields:
            value = values.get(field.name, "")
            texts += value if isinstance(value, list) else [str(value)]
        if len(texts) > 1:  # `parse` separates them by tabs
            texts = [text.replace("\t", " ") for text in texts]
            while not texts[-1] and len(texts) > 1:
                texts.pop()
        return self.parse("\t".join(texts), location)

    def form_values(self, record: Record) -> dict[str, FieldValue]:
        """Return the values of the input fields for a record of the data, or nothing.

        A form shows them as an example that can be changed.
        """
        values = {
            field.name: record[field.name] for field in self.input_fields if field.name in record
        }
        is_complete = all(field.name in values for field in self.input_fields if field.is_required)
        return values if is_complete else {}

    def stream(self, record: Record, on_text: TextCallback) -> Prediction:
        """Return the prediction for a record; `on_text` gets the text as far as it is written.

        A later text may differ from an earlier one, because a beam search changes its mind.
        """

        def on_step(ids: list[int]) -> None:
            text = self.partial_text(record, ids)
            if text is not None:
                on_text(text)

        with listen(on_step, reads_outputs=True):
            return self.predict([record])[0]

    def partial_text(self, record: Record, ids: Sequence[int]) -> str | None:  # noqa: ARG002
        """Return the text of an unfinished output, if the task writes one token after another."""
        return None

    def replica_count(self) -> int:
        """Return the number of batches that are predicted at once.

        Attention is observed and edited in the thread that asks for it.
        """
        is_on_cpu = self.device.type == "cpu"
        return replica_count(self.replicas) if is_on_cpu and not is_observed(self.model) else 1

    @abstractmethod
    def predict(
        self, records: Sequence[Record], *, on_progress: ProgressCallback | None = None
    ) -> Sequence[Prediction]:
        """Return a prediction for each record, in order; targets in the records are not read."""

    def details(self, record: Record) -> JsonObject:  # noqa: ARG002 - most have none
        """Return more fields for JSON output that take time to compute."""
        return {}

    @abstractmethod
    def metrics(self, records: Sequence[Record], predictions: Sequence[Prediction]) -> Metrics:
        """Compare predictions with the targets of their records."""

    def score(
        self, records: Sequence[Record], *, on_progress: ProgressCallback | None = None
    ) -> Metrics:
        """Return the standard metrics of the task, with signatures where metrics have any."""
        if not records:
            raise InputError("records are missing: there is nothing to score")
        predictions = self.predict(records, on_progress=on_progress)
        return {
            **self.metrics(records, predictions),
            **self.likelihood_metrics(records),
            self.example_unit: len(records),
        }

    def likelihood_metrics(self, records: Sequence[Record]) -> Metrics:
        """Return metrics that need the model's probabilities of the targets."""
        loss = self.negative_log_likelihood(records)
        return {"loss": loss.total.item() / loss.count}

    def validation_metric(self, name: str, records: Sequence[Record]) -> float:
        """Return the metric that chooses the best weights; may tune a decision threshold."""
        metrics = self.metrics(records, self.predict(records))
        if name not in metrics:
            raise InputError(f"train.metric = {name!r} is not known for this data and model")
        return float(metrics[name])

    def tuned_weights(self) -> dict[str, Tensor]:
        """Return buffers that validation has set, which replace those of averaged weights."""
        return {}

    # --- inspection

    @abstractmethod
    def attention_map(self, record: Record, target: str | None = None) -> AttentionMap:
        """Return the attention weights of every layer and head for a record."""

    def output_map(self, record: Record) -> AttentionMap:
        """Return the attention for a record and the output that the model writes, for a page.

        Language models differ here: their `attention_map` shows the input alone.
        """
        return self.attention_map(record)

    @abstractmethod
    def render(
        self,
        record: Record,
        surface: Surface,
        *,
        target: str | None = None,
        layer: int | None = None,
    ) -> str:
        """Return the prediction and its attention as text for a terminal."""

    def has_attention(self) -> bool:
        """Return whether the model has an attention that `render` can show."""
        return any(isinstance(part, Attention) for part in self.model.modules())

    def attention_names(self) -> tuple[str, ...]:
        """Return the names of the attentions that `attention_map` shows, in its order."""
        return tuple(named_attentions(self.model))

    def exportable_model(self) -> Model:
        """Return the model, or its encoder, that can be written in another format."""
        raise InputError(f"the task {self.name} cannot be exported")

    def exportable_head(self) -> "ExportableHead | None":
        """Return the trained head of that model, if it has one."""
        return None

    def aligner(self) -> "Aligner | None":
        """Return what links source and target words by attention, if the task has both."""
        return None

    def readout(self, record: Record) -> Readout:  # noqa: ARG002
        """Return what tests of faithfulness need."""
        raise InputError(f"--faithfulness does not support the task {self.name}")

    def forced_attention(self, record: Record, links: Sequence[str]) -> dict[str, Edit]:  # noqa: ARG002
        """Return edits that force output words to attend to given input words."""
        raise InputError(f"--force-attention does not support the task {self.name}")


def batches_by_length(
    task: Task[SizedT, BatchT, ModelT],
    corpus: Corpus,
    options: BatchOptions,
    *,
    to_examples: Callable[[Iterable[Record]], Iterator[SizedT]] | None = None,
    collate: Callable[[list[SizedT]], BatchT] | None = None,
) -> Batches[SizedT, BatchT]:
    """Return batches of training examples of about equal length, by default those of the task."""
    examples = store_examples(
        lambda: corpus.read("train"),
        to_examples or task.examples,
        task.fields,
        seed=options.seed,
        shuffle_buffer=options.shuffle_buffer,
        packed=task.packed,
        streamed=task.streamed,
    )
    return Batches(
        examples,
        collate=collate or task.collate,
        tokens_per_batch=options.tokens_per_batch,
        examples_per_batch=options.examples_per_batch,
        seed=options.seed,
    )


AnyTask = Task[Any, Any, Any]
"""A task with any types of examples, batches and model."""


class TaskBuilder(ABC, Generic[SettingsT, ModelT]):
    """Reads the settings of a task and builds its parts: where settings stop."""

    comparison_class: ClassVar[type[Comparison]] = Comparison

    def resolve_settings(self, settings: SettingsT) -> SettingsT:
        """Return settings with what they take from another run."""
        return settings

    @abstractmethod
    def vocabulary_loaders(self, settings: SettingsT) -> Mapping[str, VocabularyLoader]:
        """Return how each vocabulary of a run is loaded; NAME is kept in NAME.json."""

    @abstractmethod
    def build_vocabularies(self, settings: SettingsT, corpus: Corpus) -> dict[str, RunAsset]:
        """Build vocabularies from the training data."""

    def placeholder_vocabularies(self, settings: SettingsT) -> dict[str, RunAsset]:
        """Return tiny vocabularies, to build a model where there is no data."""
        tokenizer, labels = train_tokenizer("wordpiece", ["ab"], 8), Labels(["a", "b"])
        others = {"labels": labels, "tags": labels, "states": labels, "database": Database([], [])}
        return {name: others.get(name, tokenizer) for name in self.vocabulary_loaders(settings)}

    @abstractmethod
    def build_model(self, settings: SettingsT, vocabularies: Vocabularies) -> ModelT:
        """Return a model with random weights."""

    @abstractmethod
    def build_task(self, settings: SettingsT, vocabularies: Vocabularies, model: ModelT) -> AnyTask:
        """Return the task with this model."""

    def load_pretrained(self, settings: SettingsT, model: ModelT) -> None:
        """Replace random weights by those of another run, if the settings name one."""

    @abstractmethod
    def check_data(
        self, settings: SettingsT, progress: Progress, memory_probe: MemoryProbe
    ) -> JsonObject:
        """Examine the data of the settings: counts, leaks, lengths and warnings as plain data."""


AnyTaskBuilder = TaskBuilder[Any, Any]
