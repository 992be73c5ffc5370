"""Record the hypotheses that a search extends."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from jaxtyping import Float, Int
from torch import Tensor

from regard.decoding.stepper import Stepper


class SearchNode(NamedTuple):
    """A token that a search has extended a hypothesis with."""

    parent: int  # the index of the previous token's node; -1 for none
    token: int
    log_prob: float  # of all tokens up to this one


class TracingStepper:
    """A stepper that records one search: `nodes` has a tree for each input, parents first."""

    def __init__(self, stepper: Stepper[Any, Any]):
        self.stepper = stepper
        self.nodes: list[SearchNode] = []
        self.row_nodes: list[int] = []  # the node that each row has read last
        self.last_log_probs: Tensor | None = None  # from which the search chooses the next tokens

    def start(self, memory: object) -> object:
        return self.stepper.start(memory)

    def step(self, state: object, tokens: Int[Tensor, " n"]) -> tuple[Float[Tensor, "n v"], object]:
        if self.last_log_probs is None:
            self.row_nodes = [-1] * len(tokens)
        else:
            token_log_probs = self.last_log_probs.gather(1, tokens[:, None])[:, 0].tolist()
            self.row_nodes = [
                self.add_node(row, token, token_log_prob)
                for row, token, token_log_prob in zip(
                    self.row_nodes, tokens.tolist(), token_log_probs, strict=True
                )
            ]
        log_probs, state = self.stepper.step(state, tokens)
        self.last_log_probs = log_probs.clone()  # the search may write into `log_probs`
        return log_probs, state

    def select(self, state: object, rows: Int[Tensor, " m"]) -> object:
        if self.last_log_probs is not None:
            self.row_nodes = [self.row_nodes[row] for row in rows.tolist()]
            self.last_log_probs = self.last_log_probs.index_select(0, rows)
        return self.stepper.select(state, rows)

    def add_node(self, parent: int, token: int, token_log_prob: float) -> int:
        previous_log_prob = self.nodes[parent].log_prob if parent >= 0 else 0.0
        self.nodes.append(SearchNode(parent, token, previous_log_prob + token_log_prob))
        return len(self.nodes) - 1

    def path(self, tokens: Sequence[int]) -> set[int]:
        """Return the nodes of this output, as far as the search has extended it."""
        path_nodes, current = set[int](), -1
        for token in tokens:
            children = [
                index
                for index, node in enumerate(self.nodes)
                if (node.parent, node.token) == (current, token)
            ]
            if not children:
                break
            current = children[0]
            path_nodes.add(current)
        return path_nodes
