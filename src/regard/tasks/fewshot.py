"""A class from a few examples: they are shown with their labels, and then one without.

    x_t = [embed(picture_t); label_t]       t < T; the last label is zeros
    loss = - log p(class of the last | x_1..T)              at the last step only

Mishra et al. 2018, sec. 4.1: pictures are embedded by the small network of Vinyals et al. 2016, and
learnt together with it. Points of a generator are shown as they are.

# differs: several pictures can be asked for after the same examples, each in a sequence of its own
# with the examples in another order: those are then embedded once for all of them. A batch norm
# brings what is embedded to mean 0 and deviation 1: else all pictures look alike at first.
e: episodes   s: examples with a label   q: those asked for   n: both   w: ways (classes)
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor, nn

from regard.attention.observe import observe
from regard.data.corpus import Record
from regard.data.synthetic.episodes import SampledEpisodes
from regard.layers.pictures import PictureEncoder
from regard.tasks.loss import Loss

EPISODES_PER_BATCH = 64  # episodes that are looked at together, when none is learnt from


@dataclass(frozen=True)
class FewshotBatch:
    """Examples, their labels, what is asked for, and the order of the examples before each."""

    examples: Float[Tensor, "e n *of"]
    labels: Int[Tensor, "e s"]
    targets: Int[Tensor, "e q"]
    order: Int[Tensor, "e q s"]


class FewshotPrediction(NamedTuple):
    """The number of a class, and how likely each is."""

    label: int
    probabilities: list[float]


class EpisodeClassifier(nn.Module):
    """`embed` makes a vector of each example (None: it is one), `learner` an answer of them all."""

    def __init__(self, embed: PictureEncoder | None, learner: nn.Module, ways: int):
        super().__init__()
        self.embed, self.ways = embed, ways
        self.learner: Any = learner  # any with `episode`
        self.norm = None if embed is None else nn.BatchNorm1d(embed.out.out_features, affine=False)

    def forward(self, batch: FewshotBatch) -> Float[Tensor, "e q w"]:
        """Logits of the last step of each sequence."""
        episodes, support_size = batch.labels.shape
        queries = batch.order.shape[1]
        states = self.embeddings(batch.examples)
        gather_index = batch.order.flatten(1)[..., None].expand(-1, -1, states.shape[-1])
        support = (
            states[:, :support_size].gather(1, gather_index).unflatten(1, (queries, support_size))
        )
        inputs = torch.cat([support, states[:, support_size:, None]], 2)
        support_labels = batch.labels.gather(1, batch.order.flatten(1)).unflatten(
            1, (queries, support_size)
        )
        labels = F.one_hot(support_labels, self.ways).to(inputs)
        labels = F.pad(labels, (0, 0, 0, 1))  # the last one is not told
        outputs = self.learner.episode(inputs.flatten(0, 1), labels.flatten(0, 1))
        return outputs[:, -1].unflatten(0, (episodes, queries))

    def embeddings(self, examples: Float[Tensor, "e n *of"]) -> Float[Tensor, "e n d"]:
        """A larger picture has several places: their mean."""
        if self.embed is None or self.norm is None:
            return examples
        # channels last: on a CPU convolutions of 32 filters take half the time then
        pictures = examples.flatten(0, 1).contiguous(memory_format=torch.channels_last)
        return self.norm(self.embed(pictures).mean(1)).unflatten(0, examples.shape[:2])


class FewshotTask:
    """A model that is told classes by examples, and how pictures become numbers."""

    def __init__(self, model: EpisodeClassifier):
        self.model = model

    def collate(self, episodes: SampledEpisodes) -> FewshotBatch:
        examples = torch.from_numpy(np.ascontiguousarray(episodes.examples))
        arrays = (episodes.support_labels, episodes.query_labels, episodes.support_order)
        return FewshotBatch(
            to_floats(examples), *(torch.from_numpy(array.copy()) for array in arrays)
        )

    def collate_records(self, records: Sequence[Record]) -> FewshotBatch:
        """Episodes of one query, in the order that they have."""
        labels = np.stack([record["labels"] for record in records])
        targets = np.array([[record["wanted"]] for record in records])
        order = np.broadcast_to(np.arange(labels.shape[1]), (len(records), 1, labels.shape[1]))
        examples = np.stack([record["shown"] for record in records])
        return self.collate(SampledEpisodes(examples, labels, targets, order))

    def loss(self, batch: FewshotBatch, smoothing: float = 0.0) -> Loss:
        """Counted are pictures that are asked for."""
        logits, targets = self.model(batch).flatten(0, 1), batch.targets.flatten()
        total = F.cross_entropy(logits, targets, reduction="sum", label_smoothing=smoothing)
        return Loss(total, len(targets))

    @torch.no_grad()
    def negative_log_likelihood(self, records: Sequence[Record]) -> Loss:
        self.model.eval()
        losses = [self.loss(self.collate_records(chunk)) for chunk in chunks(records)]
        total = torch.stack([loss.total.double() for loss in losses]).sum()
        return Loss(total, sum(loss.count for loss in losses))

    @torch.no_grad()
    def predict(
        self, records: Sequence[Record], on_progress: Callable[[int], None] | None = None
    ) -> list[FewshotPrediction]:
        """What each is taken for, in their order."""
        self.model.eval()
        predictions = list[FewshotPrediction]()
        for chunk in chunks(records):
            for row in self.model(self.collate_records(chunk))[:, 0].softmax(-1).tolist():
                predictions.append(FewshotPrediction(int(np.argmax(row)), row))
            if on_progress is not None:
                on_progress(len(chunk))
        return predictions

    @torch.no_grad()
    def attention_weights(self, record: Record) -> dict[str, Tensor]:
        """What each step looked at, by the attention's name: [s+1 s+1]; the last is the query."""
        with observe(self.model.eval()) as recorded:
            self.model(self.collate_records([record]))
        return {name: weights[0] for name, weights in recorded.joined().items()}


def chunks(records: Sequence[Record]) -> list[Sequence[Record]]:
    """All of one have as many examples."""
    if not records:
        raise ValueError("records are missing: there is nothing to score")
    return [
        records[start : start + EPISODES_PER_BATCH]
        for start in range(0, len(records), EPISODES_PER_BATCH)
    ]


def to_floats(examples: Tensor) -> Float[Tensor, "e n *of"]:
    """Pixels [… h w c] as [… c h w], white being 0 and black 1; points as they are."""
    if examples.dtype != torch.uint8:
        return examples
    return examples.movedim(-1, 2).float().div_(-255).add_(1)


def nearest_class(record: Record) -> int:
    """What a ruler would say: the class whose examples' mean is nearest, number by number."""
    examples: NDArray[Any] = record["shown"].astype(np.float64).reshape(len(record["shown"]), -1)
    labels = record["labels"]
    means = np.stack([examples[:-1][labels == way].mean(0) for way in range(labels.max() + 1)])
    return int(((means - examples[-1]) ** 2).sum(-1).argmin())
