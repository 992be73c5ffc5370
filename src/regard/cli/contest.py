"""What `regard compare` measures, notes and shows of a model: for each task its own."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from regard.attention.core import Attention
from regard.cli.look import render_classification, render_summary, render_translation
from regard.cli.look_caption import render_caption
from regard.cli.look_picture import render_image
from regard.config.settings import Settings
from regard.data.corpus import Record
from regard.explain.comparison import (
    GoldAlignments,
    alignments_from_files,
    alignments_from_records,
    measure_run,
    measure_translation_run,
)
from regard.metrics.comparison import ModelResult, concatenated_records
from regard.train.caption import CaptionRun
from regard.train.classify import ClassifyRun
from regard.train.image import ImageRun
from regard.train.run import ProgressCallback, Run
from regard.train.summarize import SummarizeRun
from regard.train.translate import TranslateRun
from regard.training.log import LogEntry
from regard.view import chart
from regard.view.terminal import Surface

R = TypeVar("R", bound=Run)


class Options(NamedTuple):
    """Words of the command line that not every task knows."""

    join: int = 1
    gold: Path | None = None
    pairs: Path | None = None
    gold_base: int = 0
    tokenize: str = "13a"
    show_attention: bool = False


class Contest(Generic[R]):
    """Models of any task: the metrics of their own `score`."""

    known: ClassVar[tuple[str, ...]] = ()  # of the options

    def __init__(self, models: Mapping[str, Settings], records: Sequence[Record], options: Options):
        self.records, self.options = records, options
        self.total = len(records)  # to be scored for each model
        self.notes = self.compare_notes(models)

    @classmethod
    def check(cls, options: Options, task: str) -> None:
        """An option that means nothing here is not passed over."""
        for name, default in Options()._asdict().items():
            if getattr(options, name) != default and name not in cls.known:
                *others, last = [one for one, kind in CONTESTS.items() if name in kind.known]
                known = f"{', '.join(others)} and {last}" if others else last
                option = name.replace("_", "-")
                raise ValueError(f"--{option} is for {known}, not for {task}")

    def compare_notes(self, models: Mapping[str, Settings]) -> list[str]:
        """What a reader has to know to compare."""
        if len({settings.text.model_dump_json() for settings in models.values()}) == 1:
            return []
        return ["perplexities and losses are of different tokens, and cannot be compared"]

    def measure(
        self, name: str, run: R, log: Sequence[LogEntry], told: ProgressCallback
    ) -> ModelResult:
        return measure_run(name, run, log, self.records, told)

    def render_attention(self, run: R, surface: Surface) -> str | None:  # noqa: ARG002 - of these, nothing
        """What it looked at in the first record, for the terminal; None if there is nothing."""
        return None

    def attention_png(self, name: str, run: R) -> bytes | None:  # noqa: ARG002 - of these, nothing
        """The same as a PNG."""
        return None


class Translators(Contest[TranslateRun]):
    """BLEU, by length too, alignment errors, and maps."""

    known: ClassVar[tuple[str, ...]] = Options._fields

    def __init__(self, models: Mapping[str, Settings], records: Sequence[Record], options: Options):
        super().__init__(models, records, options)
        self.truth = gold_alignments(records, options)
        self.longer = concatenated_records(records, options.join) if options.join > 1 else ()
        self.total += len(self.longer)

    def compare_notes(self, models: Mapping[str, Settings]) -> list[str]:
        notes = ["AER: links by the greatest weight, the reference being read"]
        if (most := self.options.join) > 1:
            notes.append(f"BLEU by length: sentences of 1 to {most} consecutive pairs, joined")
        return notes + super().compare_notes(models)

    def measure(
        self, name: str, run: TranslateRun, log: Sequence[LogEntry], told: ProgressCallback
    ) -> ModelResult:
        measured, signature = measure_translation_run(
            name,
            run,
            log,
            self.records,
            longer=self.longer,
            truth=self.truth,
            on_progress=told,
            tokenize=self.options.tokenize,
        )
        if (note := f"BLEU: {signature}") not in self.notes:
            self.notes.insert(0, note)
        return measured

    def render_attention(self, run: TranslateRun, surface: Surface) -> str | None:
        return (
            render_translation(run, self.records[0]["source"], surface)
            if run.model.cross_attentions
            else None
        )

    def attention_png(self, name: str, run: TranslateRun) -> bytes | None:
        if not run.model.cross_attentions:
            return None
        text = self.records[0]["source"]
        best = run(text)
        seen = run.task.alignment(text, best.ids)
        if max(seen.weights.shape) > chart.MAX_CELLS:
            return None
        title = f"{name}: {best.text}"
        return chart.heatmap_png(seen.weights.tolist(), seen.target, seen.source, title)


class Summarizers(Contest[SummarizeRun]):
    """ROUGE, what is repeated and copied, and what the first summary looked at."""

    known: ClassVar[tuple[str, ...]] = ("show_attention",)

    def compare_notes(self, models: Mapping[str, Settings]) -> list[str]:
        copying = {getattr(settings.model, "copying", False) for settings in models.values()}
        notes = ["exact, repeated (three words in a row) and copied: in percent"]
        if len(copying) > 1:
            notes.append(
                "perplexity: a model that copies has to tell names which others only call unknown"
            )
        return notes + super().compare_notes(models)

    def render_attention(self, run: SummarizeRun, surface: Surface) -> str | None:
        return (
            render_summary(run, self.records[0]["source"], surface)
            if run.model.cross_attentions
            else None
        )


class Classifiers(Contest[ClassifyRun]):
    """Verdicts, and the words that they rest on."""

    known: ClassVar[tuple[str, ...]] = ("show_attention",)

    def compare_notes(self, models: Mapping[str, Settings]) -> list[str]:  # noqa: ARG002
        return []  # a loss is of a text, whatever its tokens are

    def render_attention(self, run: ClassifyRun, surface: Surface) -> str | None:
        looks = any(isinstance(part, Attention) for part in run.model.modules())
        return render_classification(run, self.records[0], surface) if looks else None


class Seers(Contest[ImageRun]):
    """Verdicts on pictures, and the patches that they rest on."""

    known: ClassVar[tuple[str, ...]] = ("show_attention",)

    def compare_notes(self, models: Mapping[str, Settings]) -> list[str]:  # noqa: ARG002
        return []  # a loss is of a picture

    def render_attention(self, run: ImageRun, surface: Surface) -> str | None:
        return render_image(run, self.records[0]["picture"], surface)


class Captioners(Contest[CaptionRun]):
    """Captions, and where their words looked."""

    known: ClassVar[tuple[str, ...]] = ("show_attention",)

    def compare_notes(self, models: Mapping[str, Settings]) -> list[str]:
        return ["pointing: the reference being read, in percent", *super().compare_notes(models)]

    def render_attention(self, run: CaptionRun, surface: Surface) -> str | None:
        return (
            render_caption(run, self.records[0]["picture"], surface)
            if run.model.cross_attentions
            else None
        )


CONTESTS: dict[str, type[Contest[Any]]] = {
    "translate": Translators,
    "summarize": Summarizers,
    "classify": Classifiers,
    "image": Seers,
    "caption": Captioners,
    "language": Contest,
    "music": Contest,
    "fold": Contest,
    "copy": Contest,
    "recall": Contest,
    "bandit": Contest,
    "fewshot": Contest,
    "pretrain": Contest,
    "tag": Contest,
    "understand": Contest,
    "chat": Contest,
    "answer": Contest,
}


def gold_alignments(records: Sequence[Record], options: Options) -> GoldAlignments | None:
    if (options.gold is None) != (options.pairs is None):
        raise ValueError("--gold and --pairs belong together: give both")
    if options.gold is None or options.pairs is None:
        return alignments_from_records(records)
    return alignments_from_files(options.gold, options.pairs, options.gold_base)
