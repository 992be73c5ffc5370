"""A model that tags words and classifies sentences.

b: sentences   t: positions   w: words   k: tags   c: classes
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.data.tag_schemes import OUTSIDE, TagScheme, can_follow
from regard.layers.crf import CRF, FORBIDDEN_SCORE
from regard.layers.encoder_states import EncoderStates
from regard.layers.output_heads import ClassifierHead, build_pooling
from regard.layers.precision import to_double
from regard.models.protocols import Encoder
from regard.tasks.encoding import EncoderModel
from regard.tasks.tag.inputs import word_states


class TagLogits(NamedTuple):
    """Logits of the tags of each word, and of the classes of the sentence if there are any."""

    tags: Float[Tensor, "b w k"]
    valid: Bool[Tensor, "b w"]
    label: Float[Tensor, "b c"] | None


class SequenceTagger(EncoderModel[Encoder[EncoderStates]]):
    """An encoder with a head for each word, and a head for the sentence if there are classes."""

    def __init__(
        self,
        encoder: Encoder[EncoderStates],
        tags: Sequence[str],
        labels: int = 0,
        *,
        scheme: TagScheme = "bio",
        crf: bool = True,
        hidden_dim: int | None = None,
        dropout: float = 0.0,
        frozen: bool = False,
    ):
        super().__init__(encoder, frozen=frozen)
        self.head = ClassifierHead(encoder.width, len(tags), hidden_dim=hidden_dim, dropout=dropout)
        self.crf = CRF(len(tags), *allowed_transitions(tags, scheme)) if crf else None
        self.pooling = self.verdict = None
        if labels:
            pooled_width: int | None = encoder.pooled_width
            if pooled_width is None:
                self.pooling = build_pooling("attention", encoder.width)
            self.verdict = ClassifierHead(
                pooled_width or encoder.width, labels, hidden_dim=hidden_dim, dropout=dropout
            )

    def forward(self, inputs: Mapping[str, Tensor]) -> TagLogits:
        """Return logits; `begins` marks the beginnings of words, if not every position is one."""
        word_starts = inputs.get("begins")
        encoded = self.encoder.encode(
            **{name: tensor for name, tensor in inputs.items() if name != "begins"}
        )
        states, valid, label = encoded.states, encoded.valid, None
        if self.verdict is not None:
            label = self.verdict(
                encoded.pooled if self.pooling is None else self.pooling(states, valid)
            )
        if word_starts is not None:
            states, valid = word_states(states, word_starts)
        return TagLogits(self.head(states), valid, label)

    def best_tags(self, logits: TagLogits) -> Int[Tensor, "b w"]:
        """Return the likeliest tags: of the sentence with a CRF, of each word without."""
        if self.crf is not None:
            return self.crf.best_tags(logits.tags, logits.valid)
        return logits.tags.argmax(-1).masked_fill(~logits.valid, 0)

    @torch.no_grad()
    def span_probabilities(
        self, logits: TagLogits, row: int, tags: Sequence[int], spans: Sequence[tuple[int, int]]
    ) -> list[float]:
        """Return the probability that the words of each span (start, end) have these tags.

        With a CRF it is Z(the tags of the span are given) / Z, by two forward recursions. Without,
        it is the product over the words.
        """
        energy = to_double(logits.tags[row])
        valid = logits.valid[row].to(energy.device)
        if self.crf is None:
            log_probs = energy.log_softmax(-1)
            chosen = log_probs[range(len(tags)), list(tags)]
            return [float(chosen[start:end].sum().exp()) for start, end in spans]
        rows = [energy]
        for start, end in spans:
            given = torch.full_like(energy, FORBIDDEN_SCORE)
            positions = torch.arange(start, end, device=given.device)
            given[positions, torch.tensor(tags[start:end], device=given.device)] = 0.0
            is_inside = torch.zeros_like(valid)
            is_inside[start:end] = True
            rows.append(torch.where(is_inside[:, None], energy + given, energy))
        log_sums = self.crf.log_partition(torch.stack(rows), valid.expand(len(rows), -1))
        return (log_sums[1:] - log_sums[0]).exp().clamp(max=1.0).tolist()


def allowed_transitions(tags: Sequence[str], scheme: TagScheme) -> tuple[Tensor, Tensor, Tensor]:
    """Return which tag may follow which, which may begin a sentence, and which may end it."""
    transitions = [[can_follow(first, second, scheme) for second in tags] for first in tags]
    begins = [can_follow(OUTSIDE, tag, scheme) for tag in tags]
    ends = [can_follow(tag, OUTSIDE, scheme) for tag in tags]
    return torch.tensor(transitions), torch.tensor(begins), torch.tensor(ends)
