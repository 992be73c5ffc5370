"""What the two tasks of music share: pieces that can be played and saved."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from regard.data.corpus import Record
from regard.tasks.base import Prediction, ProgressCallback
from regard.view.midi import MidiNote


@dataclass(frozen=True)
class MusicPrediction(Prediction, ABC):
    """A piece of music, its beginning included, and the log-probability of what was added."""

    log_prob: float

    @property
    @abstractmethod
    def notes(self) -> list[MidiNote]:
        """The notes of the piece, in quarter notes, for MIDI and pictures."""

    @property
    @abstractmethod
    def file_text(self) -> str:
        """The contents of a file in the format of the task."""


class Composer(ABC):
    """A task that composes music, for `regard play`."""

    text_suffix: ClassVar[str]  # of files that `MusicPrediction.file_text` is for
    play_options: ClassVar[tuple[str, ...]]  # options of `regard play` that not every task has

    @abstractmethod
    def parse(self, line: str, location: str) -> Record:
        """Convert the beginning of a piece to a record; an empty line is no beginning."""

    @abstractmethod
    def predict(
        self,
        records: Sequence[Record],
        *,
        on_progress: ProgressCallback | None = None,
        voices: int | None = None,
    ) -> Sequence[MusicPrediction]:
        """Return a piece for each beginning, with `voices` notes in each added step."""
