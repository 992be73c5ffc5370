"""Notes of `regard compare` on captioning."""

from collections.abc import Mapping

from regard.config.settings import Settings
from regard.tasks.comparison import Comparison


class CaptionComparison(Comparison):
    """Compares models that write captions."""

    def comparison_notes(self, models: Mapping[str, Settings]) -> list[str]:
        note = "pointing: with the reference as input, in percent"
        return [note, *super().comparison_notes(models)]
