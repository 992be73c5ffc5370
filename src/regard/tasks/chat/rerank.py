"""Choice among several replies by maximum mutual information (Li et al. 2016).

score = (1 - w) log p(reply | history) + w log p(history | reply)
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Protocol, runtime_checkable

from jaxtyping import Float
from torch import Tensor

from regard.tasks.chat.turns import Turn
from regard.tasks.generation import TextOutput


@runtime_checkable
class BackwardModel(Protocol):
    """A model that reads the turns of a conversation in reverse."""

    def backward_log_prob(
        self, history: Sequence[Turn], replies: Sequence[str]
    ) -> Float[Tensor, " b"]: ...


class ReplyReranker:
    """A backward model and the weight of its log-probabilities.

    `load` is called when the first reply is chosen.
    """

    def __init__(self, load: Callable[[], BackwardModel], weight: float):
        self.load, self.weight = load, weight

    @cached_property
    def model(self) -> BackwardModel:
        return self.load()

    def best(self, history: Sequence[Turn], replies: Sequence[TextOutput]) -> TextOutput:
        """Return the reply with the highest score; the first of equal ones."""
        log_probs = self.model.backward_log_prob(history, [reply.text for reply in replies])
        scores = [
            (1 - self.weight) * reply.log_prob + self.weight * log_prob
            for reply, log_prob in zip(replies, log_probs.tolist(), strict=True)
        ]
        return replies[scores.index(max(scores))]
