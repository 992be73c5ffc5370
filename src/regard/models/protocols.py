"""The protocols of models: what a task needs of its model, whatever its class is.

    Model            an `nn.Module`: parameters, submodules, training mode
    Decoder          writes tokens: teacher_forced, logits, start, step, select
    Seq2SeqModel     translate, summarize: a source text into a target text
    CaptionModel     caption: an image into a text
    LanguageModel    language, chat, tunes of music: continues a text
    RollModel        piano rolls of music: continues a sequence of steps with many keys each
    Encoder          classify, tag, understand, answer, image, pretrain, fold: states of an input
    Learner          copy, recall, fewshot: logits at each step of an episode
    ActingLearner    bandit: a learner that also reads an episode step by step

`MemoryT` is the encoded source of a model and `StateT` its state between two steps. A task passes
them on and never looks into them. No model inherits from a protocol: `tests/laws/test_protocols.py`
compares each model with the protocols of its tasks.

b: batch   s: source positions   t: target positions   n: rows of a search   d: width
v: vocabulary   k: keys   i: inputs of a step   f: feedback of a step   o: outputs of a step
"""

from collections.abc import Callable, Iterator, Mapping
from inspect import get_annotations
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast, runtime_checkable

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.layers.embedding import Embedding
from regard.layers.encoder_states import EncoderStates, PairStates, SpanStates

MemoryT = TypeVar("MemoryT")
MemoryT_contra = TypeVar("MemoryT_contra", contravariant=True)
StateT = TypeVar("StateT")
StatesT_co = TypeVar("StatesT_co", bound=EncoderStates | PairStates | SpanStates, covariant=True)
ModelT = TypeVar("ModelT")


@runtime_checkable
class Model(Protocol):
    """The part of an `nn.Module` that tasks use."""

    training: bool

    def modules(self) -> Iterator[nn.Module]: ...
    def named_modules(self) -> Iterator[tuple[str, nn.Module]]: ...
    def get_submodule(self, target: str) -> nn.Module: ...
    def parameters(self) -> Iterator[nn.Parameter]: ...
    def named_parameters(self) -> Iterator[tuple[str, nn.Parameter]]: ...
    def named_buffers(self) -> Iterator[tuple[str, Tensor]]: ...
    def state_dict(self) -> Mapping[str, Tensor]: ...
    def load_state_dict(self, state_dict: Mapping[str, Tensor]) -> object: ...
    def train(self: ModelT, mode: bool = True) -> ModelT: ...
    def eval(self: ModelT) -> ModelT: ...


@runtime_checkable
class Decoder(Model, Protocol[MemoryT_contra, StateT]):
    """A model that writes one token after another."""

    if TYPE_CHECKING:  # a submodule, which isinstance does not find from Python 3.12 on

        @property
        def output(self) -> nn.Linear | Embedding:
            """The layer before the softmax."""
            ...

    @property
    def cross_attentions(self) -> tuple[str, ...]:
        """The names of the attentions to the source; empty if the model has none."""
        ...

    def logits(self, states: Float[Tensor, "*b d"]) -> Float[Tensor, "*b v"]: ...

    def start(self, memory: MemoryT_contra) -> StateT:
        """Return the state before the first token."""
        ...

    def step(self, state: StateT, tokens: Int[Tensor, " n"]) -> tuple[Float[Tensor, "n v"], StateT]:
        """Return log-probabilities of the token after `tokens`, and the next state."""
        ...

    def select(self, state: StateT, rows: Int[Tensor, " m"]) -> StateT:
        """Return these rows of the state; a row may occur twice, or not at all."""
        ...


@runtime_checkable
class Seq2SeqModel(Decoder[MemoryT, StateT], Protocol[MemoryT, StateT]):
    """A model that reads a source text and writes a target text."""

    def remember(self, source: Int[Tensor, "b s"], valid: Bool[Tensor, "b s"]) -> MemoryT:
        """Encode source texts; `valid` marks real positions."""
        ...

    def teacher_forced(self, memory: MemoryT, target: Int[Tensor, "b t"]) -> Float[Tensor, "b t d"]:
        """Return the state at each target position, which `output` reads."""
        ...


@runtime_checkable
class CaptionModel(Decoder[MemoryT, StateT], Protocol[MemoryT, StateT]):
    """A model that reads an image and writes a text."""

    def grid(self, height: int, width: int) -> tuple[int, int]:
        """Return the rows and columns of regions of an image with this size."""
        ...

    def remember(self, source: Float[Tensor, "b c height width"]) -> MemoryT:
        """Encode images."""
        ...

    def teacher_forced(self, memory: MemoryT, target: Int[Tensor, "b t"]) -> Float[Tensor, "b t d"]:
        """Return the state at each target position, which `output` reads."""
        ...


@runtime_checkable
class LanguageModel(Decoder[StateT, StateT], Protocol[StateT]):
    """A model that reads a text and continues it; its memory is a state."""

    def begin(self, rows: int) -> StateT:
        """Return the state before the first token."""
        ...

    def read(self, state: StateT, ids: Int[Tensor, "n t"]) -> tuple[Float[Tensor, "n t d"], StateT]:
        """Return the state at each position, which `output` reads, and the state after the last."""
        ...

    def teacher_forced(
        self, memory: StateT | None, target: Int[Tensor, "b t"]
    ) -> Float[Tensor, "b t d"]:
        """Return the state at each position, read after `memory` or after nothing."""
        ...

    def detach(self, state: StateT) -> StateT:
        """Return the state without its gradient."""
        ...


@runtime_checkable
class RollModel(Model, Protocol[StateT]):
    """A model of piano rolls: any number of keys sound at each step."""

    def begin(self, rows: int) -> StateT: ...
    def read(
        self, state: StateT, rolls: Float[Tensor, "n t k"]
    ) -> tuple[Float[Tensor, "n t d"], StateT]: ...
    def step(
        self, state: StateT, keys: Float[Tensor, "n k"]
    ) -> tuple[Float[Tensor, "n k"], StateT]: ...
    def logits(self, states: Float[Tensor, "*b d"]) -> Float[Tensor, "*b k"]: ...


@runtime_checkable
class Encoder(Model, Protocol[StatesT_co]):
    """A model that encodes an input: a state for each position, perhaps one for the input."""

    @property
    def width(self) -> int:
        """The size of a state."""
        ...

    @property
    def pooled_width(self) -> int | None:
        """The size of the vector for the whole input; None if there is none."""
        ...

    @property
    def encode(self) -> Callable[..., StatesT_co]:
        """Encode a batch; the names of the parameters depend on the kind of the input."""
        ...


@runtime_checkable
class Learner(Model, Protocol):
    """A model that reads an episode, and may learn from the feedback in it."""

    def episode(
        self, inputs: Float[Tensor, "b t i"], feedback: Float[Tensor, "b t f"] | None = None
    ) -> Float[Tensor, "b t o"]:
        """Return logits at each step."""
        ...


@runtime_checkable
class ActingLearner(Learner, Protocol[StateT]):
    """A learner that acts between two steps of its episode."""

    def begin(self, rows: int) -> StateT: ...
    def read(
        self, state: StateT, inputs: Float[Tensor, "b t i"]
    ) -> tuple[Float[Tensor, "b t o"], StateT]: ...


AnyEncoder = Encoder[EncoderStates | PairStates | SpanStates]
# Models with any types of memory and state.
AnySeq2SeqModel = Seq2SeqModel[Any, Any]
AnyCaptionModel = CaptionModel[Any, Any]
AnyLanguageModel = LanguageModel[Any]
AnyRollModel = RollModel[Any]
AnyActingLearner = ActingLearner[Any]


def require_model(model: Model, model_type: type[ModelT]) -> ModelT:
    """Return the model as one of `model_type`, a protocol or a class; else raise a TypeError."""
    if getattr(model_type, "_is_protocol", False):
        missing = [name for name in protocol_members(model_type) if not hasattr(model, name)]
    else:
        missing = [] if isinstance(model, model_type) else ["that class"]
    if missing:
        raise TypeError(
            f"model {type(model).__name__} is no {model_type.__name__}: it lacks {missing[0]}"
        )
    return cast(ModelT, model)


def protocol_members(protocol: type) -> list[str]:
    """Return the names of all methods and attributes of a protocol."""
    bases = [base for base in protocol.__mro__ if getattr(base, "_is_protocol", False)]
    names = {name for base in bases for name in (*vars(base), *get_annotations(base))}
    return sorted(name for name in names if not name.startswith("_"))
