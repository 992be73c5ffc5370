"""Notes of `regard compare` on summarizers."""

from collections.abc import Mapping

from regard.config.settings import Settings
from regard.tasks.base import AnyTask
from regard.tasks.comparison import Comparison
from regard.tasks.summarize import view
from regard.tasks.summarize.task import SummarizeTask
from regard.view.terminal import Surface


class SummarizeComparison(Comparison):
    """Compares summarizers."""

    def comparison_notes(self, models: Mapping[str, Settings]) -> list[str]:
        notes = ["exact, repeated (word trigrams) and copied: in percent"]
        if len({getattr(settings.model, "copying", False) for settings in models.values()}) > 1:
            notes.append(
                "perplexity: a model that copies predicts names, others only the unknown token"
            )
        return notes + super().comparison_notes(models)

    def render_attention(self, task: AnyTask, surface: Surface) -> str | None:
        """Return the first summary and its attention, without a notice on truncation."""
        if not isinstance(task, SummarizeTask) or not task.has_attention():
            return None
        return view.render_summary(task, self.records[0], surface)
