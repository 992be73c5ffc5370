"""Bodies of requests to the API of OpenAI.

A field that the models here cannot honor is refused, never ignored.
"""

import secrets
from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from regard.serve.limits import ApiError

MAX_STOP_TEXTS = 4
INSTRUCTION_ROLES = ("developer", "system")
TokenIds = list[Annotated[int, Field(ge=0)]]


class OpenAIBody(BaseModel):
    """A request of an OpenAI client; fields that only describe the caller are accepted."""

    model_config = ConfigDict(extra="forbid")

    model: str
    user: str | None = None


class SamplingBody(OpenAIBody):
    """The search for an output; without temperature, top_p and seed, that of the run's settings."""

    max_tokens: Annotated[int, Field(ge=1)] | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    n: Annotated[int, Field(ge=1, le=16)] | None = None
    seed: Annotated[int, Field(ge=-(2**63), lt=2**63)] | None = None
    stop: str | list[str] | None = None
    stream: bool | None = None
    stream_options: dict[str, bool] | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    logit_bias: dict[str, float] | None = None
    metadata: dict[str, str] | None = None
    store: bool | None = None

    def stop_texts(self) -> list[str]:
        stop = [self.stop] if isinstance(self.stop, str) else self.stop or []
        if len(stop) > MAX_STOP_TEXTS:
            raise ApiError(400, f"stop: at most {MAX_STOP_TEXTS} texts")
        return [text for text in stop if text]

    def check_supported(self) -> None:
        """Refuse what no model here can do."""
        if self.presence_penalty or self.frequency_penalty:
            raise ApiError(400, "presence_penalty and frequency_penalty must be 0 or left out")
        if self.logit_bias:
            raise ApiError(400, "logit_bias is not supported; leave it out")

    def overrides(self, max_tokens: int | None) -> list[str]:
        """Return the settings of the search that this request asks for."""
        settings = list[str]()
        if self.temperature == 0:
            settings.append("decode.kind=greedy")
        elif self.temperature is not None or self.top_p is not None or self.seed is not None:
            seed = secrets.randbelow(2**31) if self.seed is None else self.seed % 2**31
            settings += [
                "decode.kind=sample",
                f"decode.temperature={self.temperature or 1.0}",
                f"decode.seed={seed}",
            ]
            if self.top_p is not None:
                settings.append(f"decode.top_p={self.top_p}")
        if max_tokens is not None:
            settings += [f"decode.max_length={max_tokens}", "decode.min_length=0"]
        return settings


class CompletionBody(SamplingBody):
    """POST /v1/completions."""

    prompt: str | list[str] | TokenIds | list[TokenIds] = Field(examples=["Once upon a time"])
    echo: bool | None = None
    suffix: str | None = None
    best_of: int | None = None
    logprobs: int | None = None


class TextPart(BaseModel):
    """A part of a message."""

    type: Literal["text"]
    text: str


class ChatMessage(BaseModel):
    """One message of a conversation."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[TextPart] | None = None
    name: str | None = None

    def text(self) -> str:
        if isinstance(self.content, list):
            return "".join(part.text for part in self.content)
        return self.content or ""


class ChatBody(SamplingBody):
    """POST /v1/chat/completions."""

    messages: list[ChatMessage] = Field(
        min_length=1, examples=[[{"role": "user", "content": "Hello"}]]
    )
    max_completion_tokens: Annotated[int, Field(ge=1)] | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = None


class EmbeddingBody(OpenAIBody):
    """POST /v1/embeddings."""

    input: str | list[str] | TokenIds | list[TokenIds] = Field(examples=["a short text"])
    encoding_format: Literal["float", "base64"] | None = None
    dimensions: int | None = None


def to_turns(messages: Sequence[ChatMessage]) -> list[str]:
    """Return the texts of a conversation in which user and assistant take turns.

    Instructions are left out: no model here has learned to follow them. `unused_message` says so.
    """
    spoken = [message for message in messages if message.role not in INSTRUCTION_ROLES]
    roles = [message.role for message in spoken]
    expected = ["assistant", "user"]
    if not roles or any(role != expected[(len(roles) - n) % 2] for n, role in enumerate(roles)):
        raise ApiError(400, "messages: user and assistant must alternate, and a user must be last")
    return [message.text() for message in spoken]


def unused_message(messages: Sequence[ChatMessage]) -> str | None:
    """Return a warning if the conversation has instructions, which the model does not read."""
    roles = sorted({message.role for message in messages if message.role in INSTRUCTION_ROLES})
    if not roles:
        return None
    return (
        f"messages: the model was trained without {' and '.join(roles)} messages; they are not used"
    )
