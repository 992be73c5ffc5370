"""Protocols of tasks for single commands, beyond the contract of `base.py`."""

from collections.abc import Sequence
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from regard.data.corpus import Record
from regard.tasks.base import ProgressCallback, TextCallback
from regard.text.special_ids import AnyTokenizer
from regard.view.midi import MidiNote


@runtime_checkable
class Conversation(Protocol):
    """A task that replies to a history of turns, for `regard chat`."""

    def check_can_reply(self, location: str) -> None: ...
    def user_turn(self, text: str) -> Any: ...
    def generate_replies(
        self, histories: Sequence[Sequence[Any]], on_text: TextCallback | None = None
    ) -> list[Any]: ...
    def append_reply(self, history: Sequence[Any], reply: Any) -> list[Any]: ...
    def describe_belief(self, reply: Any) -> str | None: ...


@runtime_checkable
class TextCompleter(Protocol):
    """A task that continues texts, for the completions of the HTTP server."""

    text: AnyTokenizer
    prompt_field: ClassVar[str]


@runtime_checkable
class TextEmbedder(Protocol):
    """A task whose encoder returns one vector for each text."""

    def embed(self, texts: Sequence[str]) -> Float[np.ndarray, "n d"]: ...


@runtime_checkable
class PlayableMusic(Protocol):
    """A piece of music that was composed."""

    @property
    def notes(self) -> list[MidiNote]: ...
    @property
    def file_text(self) -> str: ...


@runtime_checkable
class MusicComposer(Protocol):
    """A task that composes music, for `regard play`."""

    text_suffix: ClassVar[str]
    play_options: ClassVar[tuple[str, ...]]

    def parse(self, line: str, location: str) -> Record: ...
    def predict(
        self,
        records: Sequence[Record],
        *,
        on_progress: ProgressCallback | None = None,
        voices: int | None = None,
    ) -> Sequence[PlayableMusic]: ...
