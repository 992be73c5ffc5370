"""The state of each residue of a protein: helix, strand or coil; any encoder with a head on it.

    loss = - sum over residues of log p(state | all residues of the window)

A protein longer than `longest` is read in windows that overlap by half. In training every residue
of a window counts; else each is told by that window in whose middle it is most.
b: windows   s: sequences   r: residues   k: states
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from regard.attention.observe import named_attentions, observe
from regard.batching.batches import iterate_by_length
from regard.batching.example import Example, padded
from regard.data.formats.proteins import ALPHABET, UNKNOWN_RESIDUE, UNKNOWN_STATE
from regard.layers.output_heads import ClassifierHead
from regard.tasks.headed import EncoderTask, EncoderWithHead
from regard.tasks.loss import Loss
from regard.tasks.translate import TOKENS_PER_BATCH
from regard.text.labels import Labels

IGNORE_INDEX = -100  # a state that does not count
MAX_PAIRS_PER_BATCH = (
    2**17
)  # pairs of residues that are thought of at once, when none is learnt from
RESIDUE_IDS = {letter: number for number, letter in enumerate(ALPHABET, 1)}  # 0 is padding
RESIDUE_ID_COUNT = len(ALPHABET) + 1


class FoldPrediction(NamedTuple):
    """A sequence, the likeliest state of each residue, and the probabilities of all states."""

    sequence: str
    states: str
    probabilities: list[list[float]]


class ResidueWindow(NamedTuple):
    """Residues that are read, and those that are told of them."""

    context: range
    predicted: range


@dataclass(frozen=True)
class FoldBatch:
    """Windows as an encoder wants them, and the states of their residues."""

    indices: Int[Tensor, " b"]
    inputs: dict[str, Tensor]
    states: Int[Tensor, "b r"]


class ResidueClassifier(EncoderWithHead):
    """An encoder with a head for each residue."""

    def __init__(
        self, encoder: Any, states: int, *, hidden_dim: int | None = None, dropout: float = 0.0
    ):
        super().__init__(encoder)
        self.head = ClassifierHead(encoder.width, states, hidden_dim=hidden_dim, dropout=dropout)

    def forward(self, inputs: Mapping[str, Tensor]) -> Float[Tensor, "b r k"]:
        return self.head(self.encoder.encode(**inputs).states)


class FoldTask(EncoderTask):
    """`aligned`: the encoder reads aligned sequences; else of each protein the first alone."""

    fields = ("text", "states")

    def __init__(self, model: ResidueClassifier, states: Labels, *, use_alignment: bool):
        self.model, self.states, self.use_alignment = model, states, use_alignment

    def examples(
        self, records: Iterable[Mapping[str, str]], max_residues: int, *, all_residues: bool = True
    ) -> Iterator[Example]:
        """Windows of columns of letters, with states; of all residues, or of those told there."""
        state_ids = {**self.states.indices, UNKNOWN_STATE: IGNORE_INDEX}
        for index, record in enumerate(records):
            columns = self.columns(record["text"])
            states = [state_ids.get(state, IGNORE_INDEX) for state in record["states"]]
            for window in residue_windows(len(columns), max_residues):
                in_loss = window.context if all_residues else window.predicted
                yield Example(
                    index,
                    columns[window.context.start : window.context.stop],
                    [
                        states[position] if position in in_loss else IGNORE_INDEX
                        for position in window.context
                    ],
                )

    def columns(self, text: str) -> list[tuple[int, ...]]:
        """For each residue, the letters of all sequences there, as numbers."""
        rows = text.split() if self.use_alignment else text.split()[:1]
        ids = [
            [RESIDUE_IDS.get(letter, RESIDUE_IDS[UNKNOWN_RESIDUE]) for letter in row]
            for row in rows
        ]
        return list(zip(*ids, strict=True))

    def collate(self, examples: Sequence[Example]) -> FoldBatch:
        states, _ = padded([[*example.target] for example in examples])
        inputs = self.tensors([example.source for example in examples])
        return FoldBatch(
            torch.tensor([example.index for example in examples]),
            inputs,
            states.masked_fill(~inputs["valid"], IGNORE_INDEX),
        )

    def tensors(self, windows: Sequence[Sequence[tuple[int, ...]]]) -> dict[str, Tensor]:
        if not self.use_alignment:
            ids, valid = padded([[column[0] for column in window] for window in windows])
            return {"ids": ids, "valid": valid}
        lengths = torch.tensor([len(window) for window in windows])
        sequence_counts = torch.tensor([len(window[0]) for window in windows])
        ids = torch.zeros(
            len(windows), int(sequence_counts.max()), int(lengths.max()), dtype=torch.int64
        )
        for row, columns in enumerate(windows):
            ids[row, : sequence_counts[row], : lengths[row]] = torch.tensor(columns).T
        return {
            "ids": ids,
            "valid": torch.arange(ids.shape[2]) < lengths[:, None],
            "sequence_valid": torch.arange(ids.shape[1]) < sequence_counts[:, None],
        }

    def loss(self, batch: FoldBatch, smoothing: float = 0.0) -> Loss:
        logits, in_loss = self.model(batch.inputs), batch.states != IGNORE_INDEX
        total = F.cross_entropy(
            logits[in_loss], batch.states[in_loss], reduction="sum", label_smoothing=smoothing
        )
        return Loss(total, int(in_loss.sum()))

    @torch.no_grad()
    def predict(
        self,
        texts: Sequence[str],
        max_residues: int,
        on_progress: Callable[[int], None] | None = None,
    ) -> list[FoldPrediction]:
        """What the model says of each protein, window by window, put together again."""
        self.model.eval()
        text_windows = [residue_windows(len(text.split()[0]), max_residues) for text in texts]
        placements = [
            (text_index, window)
            for text_index, own_windows in enumerate(text_windows)
            for window in own_windows
        ]
        columns = [self.columns(text) for text in texts]
        probabilities = [
            torch.zeros(len(item), self.states.size, dtype=torch.float64) for item in columns
        ]
        examples = [
            Example(
                position,
                columns[text_index][window.context.start : window.context.stop],
                [0] * len(window.context),
            )
            for position, (text_index, window) in enumerate(placements)
        ]
        for batch in self.iterate_by_length(examples):
            window_probabilities = self.model(batch.inputs).softmax(-1).double()
            for position, window_index in enumerate(batch.indices.tolist()):
                text_index, window = placements[window_index]
                first = window.predicted.start - window.context.start
                predicted = window_probabilities[position, first : first + len(window.predicted)]
                probabilities[text_index][window.predicted.start : window.predicted.stop] = (
                    predicted
                )
            if on_progress is not None:  # a protein is counted when its last window is
                ends = (placements[item] for item in batch.indices.tolist())
                on_progress(
                    sum(
                        window.predicted.stop == len(probabilities[text_index])
                        for text_index, window in ends
                    )
                )
        names = self.states.names
        return [
            FoldPrediction(
                text.split()[0],
                "".join(names[item] for item in table.argmax(-1).tolist()),
                table.tolist(),
            )
            for text, table in zip(texts, probabilities, strict=True)
        ]

    @torch.no_grad()
    def attention_weights(self, text: str, max_residues: int) -> dict[str, Float[Tensor, "h r r"]]:
        """What residues looked at, of the first sequence, by layer; of the first window."""
        try:
            attentions = named_attentions(self.model.eval())
        except ValueError:
            return {}
        names = [name for name in attentions if not re.search(r"\b(edges|columns|pooling)\b", name)]
        with observe(self.model, names) as recorded:
            self.model(self.tensors([self.columns(text)[:max_residues]]))
        return {
            name.removeprefix("encoder."): weights[0, 0] if weights.ndim == 5 else weights[0]
            for name, weights in recorded.joined().items()
        }

    def iterate_by_length(self, examples: Sequence[Example]) -> Iterator[FoldBatch]:
        """So many at once that their pairs fit, where there are pairs."""
        if not examples:
            return iter(())
        max_length = max(len(example.source) for example in examples)
        examples_per_batch = (
            max(1, MAX_PAIRS_PER_BATCH // max_length**2) if self.use_alignment else None
        )
        return iterate_by_length(
            examples,
            tokens_per_batch=max(TOKENS_PER_BATCH, max_length + 1),
            examples_per_batch=examples_per_batch,
            collate=self.collate,
        )


def residue_windows(length: int, max_residues: int) -> list[ResidueWindow]:
    """Overlapping by half; a residue is told where it is nearest to the middle."""
    if length <= max_residues:
        return [ResidueWindow(range(length), range(length))]
    starts = [*range(0, length - max_residues, max(1, max_residues // 2)), length - max_residues]
    ends = [(a + b + max_residues) // 2 for a, b in pairwise(starts)]
    return [
        ResidueWindow(range(start, start + max_residues), range(low, high))
        for start, low, high in zip(starts, [0, *ends], [*ends, length], strict=True)
    ]
