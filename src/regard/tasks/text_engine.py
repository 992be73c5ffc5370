"""Predictions of a task by another engine, where it gives the same outputs."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from torch import nn

from regard.attention.core import Attention
from regard.decoding.listen import has_reader
from regard.engines.ctranslate2_cache import EngineModel
from regard.engines.ctranslate2_search import CTranslate2Layout, EngineSearch, engine_search
from regard.errors import InputError
from regard.tasks.generation import Decoding
from regard.text.special import PAD, START
from regard.text.tokenizer import Vocabulary


@runtime_checkable
class EngineUser(Protocol):
    """A task whose outputs another engine can find."""

    decoding: Decoding

    def engine_model(self) -> EngineModel:
        """Return the model and its vocabularies; InputError says why the engine cannot run it."""
        ...

    def engine_search(self, decoding: Decoding) -> EngineSearch:
        """Return the search for the engine; InputError names what it does not support."""
        ...

    def set_engine(self, layout: CTranslate2Layout | None) -> None:
        """Use this engine from now on, or none."""
        ...


class ModelVersion:
    """The weights of a model at one time: an engine with a copy of them must notice changes."""

    def __init__(self, model: nn.Module):
        self.model, self.versions = model, weight_versions(model)

    def is_current(self) -> bool:
        """Return whether the weights are the same, and nobody watches or edits the attention."""
        hooks = (m.hooks for m in self.model.modules() if isinstance(m, Attention))
        return weight_versions(self.model) == self.versions and not any(hooks)


def weight_versions(model: nn.Module) -> list[int]:
    return [weight._version for weight in model.parameters()]


def find_engine_search(decoding: Decoding, vocabulary_size: int) -> EngineSearch:
    """Return the search for an engine; InputError names the setting that it does not support."""
    if decoding.config is None:
        raise InputError("the task has a search of its own")
    if tuple(decoding.constraints.forbidden) != (PAD, START):
        raise InputError("the task forbids some tokens")
    search = engine_search(decoding.config, vocabulary_size)
    if isinstance(search, str):
        raise InputError(f"it does not support {search}")
    return search


def tokens_of(vocabulary: Vocabulary) -> Sequence[str]:
    """Return the token of each id; a gap gets a name that no text has."""
    return [vocabulary.token(n) or f"<gap {n}>" for n in range(vocabulary.size)]


def can_use_engine(version: ModelVersion | None) -> bool:
    """Return whether an engine has this model, and nobody needs to see the search at work."""
    return version is not None and version.is_current() and not has_reader()
