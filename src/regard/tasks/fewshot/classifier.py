"""The model of few-shot recognition: labeled examples and one query, as a sequence.

    x_t = [embed(image_t); label_t]       t < T; the last label is zeros

Mishra et al. 2018, sec. 4.1: the small network of Vinyals et al. 2016 embeds images, and is
trained together with the learner. Points of a generator are used as they are.

# differs: several queries can follow the same examples. Each has its own sequence with the examples
# in another order, and the examples are embedded once for all of them. A batch norm scales
# embeddings to mean 0 and deviation 1: without it, all images have nearly the same one at first.
e: episodes   s: labeled examples   q: queries   n: s + q   w: ways (classes)   d: embedding
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.layers.images import ImageEncoder
from regard.models.protocols import Learner


@dataclass(frozen=True)
class FewshotBatch:
    """Examples and queries, their labels, and the order of the examples before each query."""

    examples: Float[Tensor, "e n *of"]
    support_labels: Int[Tensor, "e s"]
    targets: Int[Tensor, "e q"]
    support_order: Int[Tensor, "e q s"]


class EpisodeClassifier(nn.Module):
    """A network `embed` from an example to a vector, and a `learner` that reads the vectors.

    `embed` is None if examples are vectors.
    """

    def __init__(self, embed: ImageEncoder | None, learner: Learner, ways: int):
        super().__init__()
        self.embed, self.ways = embed, ways
        self.learner: Learner = learner
        self.norm = None if embed is None else nn.BatchNorm1d(embed.out.out_features, affine=False)

    def forward(self, batch: FewshotBatch) -> Float[Tensor, "e q w"]:
        """Return the logits of the last step of each sequence."""
        episodes, support_size = batch.support_labels.shape
        queries = batch.support_order.shape[1]
        states = self.embeddings(batch.examples)
        gather_index = batch.support_order.flatten(1)[..., None].expand(-1, -1, states.shape[-1])
        support = (
            states[:, :support_size].gather(1, gather_index).unflatten(1, (queries, support_size))
        )
        inputs = torch.cat([support, states[:, support_size:, None]], 2)
        support_labels = batch.support_labels.gather(1, batch.support_order.flatten(1)).unflatten(
            1, (queries, support_size)
        )
        labels = F.one_hot(support_labels, self.ways).to(inputs)
        labels = F.pad(labels, (0, 0, 0, 1))  # the query has no label
        outputs = self.learner.episode(inputs.flatten(0, 1), labels.flatten(0, 1))
        return outputs[:, -1].unflatten(0, (episodes, queries))

    def embeddings(self, examples: Float[Tensor, "e n *of"]) -> Float[Tensor, "e n d"]:
        """Return a vector for each example: the mean over the regions of an image."""
        if self.embed is None or self.norm is None:
            return examples
        # channels last: on a CPU, this halves the time of convolutions of 32 filters
        images = examples.flatten(0, 1).contiguous(memory_format=torch.channels_last)
        return self.norm(self.embed(images).mean(1)).unflatten(0, examples.shape[:2])
