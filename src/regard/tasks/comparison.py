"""Measurements and notes of `regard compare` for the models of a task: the default."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from regard.config.settings import Settings
from regard.data.corpus import Record
from regard.errors import InputError
from regard.view.attention_map import AttentionMap
from regard.view.terminal import Surface

if TYPE_CHECKING:
    from regard.tasks.base import AnyTask, ProgressCallback

DIFFERENT_TOKENS = "perplexities and losses count different tokens, and cannot be compared"


class ComparisonOptions(NamedTuple):
    """Options of the command line that not every task supports."""

    join: int = 1
    gold: Path | None = None
    pairs: Path | None = None
    gold_base: int = 0
    show_attention: bool = False


class Measurement(NamedTuple):
    """The numbers of one model, and its scores by length if the task has them."""

    values: dict[str, float | None]
    by_length: dict[str, float]


class Comparison:
    """Compares models of one task on the same records, by the metrics of `Task.score`."""

    supported_options: ClassVar[tuple[str, ...]] = ("show_attention",)

    def __init__(
        self,
        models: Mapping[str, Settings],
        records: Sequence[Record],
        options: ComparisonOptions,
    ):
        self.records, self.options = records, options
        self.total = len(records)  # to be scored for each model
        self.notes = self.comparison_notes(models)

    @classmethod
    def check_options(cls, options: ComparisonOptions, task: str) -> None:
        """Raise an error for an option that the task does not support."""
        for name, default in ComparisonOptions()._asdict().items():
            if getattr(options, name) != default and name not in cls.supported_options:
                raise InputError(f"--{name.replace('_', '-')} does not support the task {task}")

    def comparison_notes(self, models: Mapping[str, Settings]) -> list[str]:
        """Return what a reader must know to compare the numbers."""
        tokenizers = {settings.text.model_dump_json() for settings in models.values()}
        return [DIFFERENT_TOKENS] if len(tokenizers) > 1 else []

    def measure(self, task: "AnyTask", on_progress: "ProgressCallback") -> Measurement:
        """Score one model."""
        metrics = task.score(self.records, on_progress=on_progress)
        values = {name: value for name, value in metrics.items() if isinstance(value, float)}
        return Measurement({**values}, {})

    def render_attention(self, task: "AnyTask", surface: Surface) -> str | None:
        """Return the attention for the first record as text; None if the model has none."""
        return task.render(self.records[0], surface) if task.has_attention() else None

    def attention_map(self, task: "AnyTask") -> AttentionMap | None:
        """Return the attention for the first record; None if the model has none to show."""
        if not self.records or not task.has_attention():
            return None
        try:
            return task.attention_map(self.records[0])
        except InputError:  # this model has no attention over tokens, or the record is too long
            return None

    def attention_png(self, name: str, task: "AnyTask") -> bytes | None:  # noqa: ARG002
        """Return the attention for the first record as a picture, if the task draws one."""
        return None
