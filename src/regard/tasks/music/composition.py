"""Shared by piano rolls and tunes: pieces that can be played and saved."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from regard.data.corpus import Record
from regard.files import JsonObject
from regard.tasks.base import Prediction, ProgressCallback
from regard.view.midi import MidiNote


@dataclass(frozen=True)
class MusicPrediction(Prediction, ABC):
    """A piece of music, its beginning included, and the log-probability of the rest."""

    log_prob: float

    def note_dicts(self) -> list[JsonObject]:
        """Return the notes as plain data; start and length are in quarter notes."""
        return [
            {"pitch": pitch, "start": float(start), "length": float(length)}
            for pitch, start, length in self.notes
        ]

    @property
    @abstractmethod
    def notes(self) -> list[MidiNote]:
        """The notes of the piece, in quarter notes, for MIDI files and plots."""

    @property
    @abstractmethod
    def file_text(self) -> str:
        """The content of a file in the format of the task."""


class Composer(ABC):
    """A task that composes music, for `regard play`."""

    text_suffix: ClassVar[str]  # of files with `MusicPrediction.file_text`
    play_options: ClassVar[tuple[str, ...]]  # options of `regard play` for this task only

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
