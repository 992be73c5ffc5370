"""Episodes of few-shot classification: labeled support examples, and queries to classify.

    prototypes   a class is a point m ~ N(0, I), its examples are x ~ N(m, noise^2 I)

The optimal classifier of prototypes is known: the class whose mean of examples, shrunk towards 0
by n / (n + noise^2), is nearest. In `regard.data.formats.class_folders`, a class is a folder of
images.

e: episodes   s: support examples   q: queries
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from regard.data.corpus import SPLITS, Record, check_split
from regard.errors import InputError

Ints = NDArray[np.int64]
TRAIN_SEED_PREFIX = 3  # of the seeds of training episodes; dev and test use 1 and 2


@dataclass(frozen=True)
class SampledEpisodes:
    """Episodes of one size; labels are class numbers within their episode, from 0."""

    examples: NDArray[np.generic]  # [e s+q …] float32 or uint8; support examples, then queries
    support_labels: Ints  # [e s]
    query_labels: Ints  # [e q]
    support_order: Ints  # [e q s] order of the support examples before each query


class EpisodeLayout(NamedTuple):
    """Labels and order of episodes without their examples; see `SampledEpisodes`."""

    support_labels: Ints
    query_labels: Ints
    support_order: Ints


def draw_layout(
    rng: np.random.Generator, count: int, ways: int, shots: int, queries: int
) -> EpisodeLayout:
    """Draw all but the examples. Queries cycle through the classes in a random order."""
    support_labels = np.broadcast_to(np.arange(ways).repeat(shots), (count, ways * shots))
    class_order = rng.random((count, ways)).argsort(-1)
    query_labels = np.tile(class_order, -(-queries // ways))[:, :queries]
    support_order = rng.random((count, queries, ways * shots)).argsort(-1)
    return EpisodeLayout(support_labels, query_labels, support_order)


class EpisodeCorpus(ABC):
    """A corpus of `eval_episodes` episodes in dev and test, and any number for training.

    Records are {"examples": support examples in order, then the query; "support_labels": classes
    of the support examples; "target": class of the query}. A record depends on the settings and
    its index alone.
    """

    splits = SPLITS

    def __init__(self, ways: int, shots: int, seed: int, eval_episodes: int):
        if ways < 2:
            raise InputError(f"ways must be at least 2, not {ways}")
        self.ways, self.shots, self.seed, self.episodes = ways, shots, seed, eval_episodes

    @abstractmethod
    def sample_episodes(
        self, split: str, rng: np.random.Generator, count: int, shots: int, queries: int
    ) -> SampledEpisodes:
        """Sample `count` episodes with classes of this split."""

    @abstractmethod
    def describe(self) -> str: ...

    def read(self, split: str) -> Iterator[Record]:
        check_split(split, self.splits)
        for index in range(self.episodes):
            rng = np.random.default_rng([self.splits.index(split), self.seed, index])
            episode = self.sample_episodes(split, rng, 1, self.shots, 1)
            order = episode.support_order[0, 0]
            examples = episode.examples[0][[*order, len(order)]]
            yield {
                "examples": examples,
                "support_labels": episode.support_labels[0, order],
                "target": int(episode.query_labels[0, 0]),
            }

    def sample_batch(
        self, seed: int, index: int, count: int, queries: int, vary_shots: bool
    ) -> SampledEpisodes:
        """Return training batch `index`; `vary_shots` draws its shots from 1 to `self.shots`."""
        rng = np.random.default_rng([TRAIN_SEED_PREFIX, self.seed, seed, index])
        shots = int(rng.integers(1, self.shots + 1)) if vary_shots else self.shots
        return self.sample_episodes("train", rng, count, shots, queries)


class Prototypes(EpisodeCorpus):
    """Gaussian classes; every episode draws new ones, so all splits have one distribution."""

    def __init__(
        self,
        ways: int = 5,
        shots: int = 1,
        *,
        dim: int = 8,
        noise: float = 0.5,
        seed: int = 0,
        eval_episodes: int = 2000,
    ) -> None:
        super().__init__(ways, shots, seed, eval_episodes)
        self.dim, self.noise = dim, noise

    def sample_episodes(
        self, split: str, rng: np.random.Generator, count: int, shots: int, queries: int
    ) -> SampledEpisodes:
        del split
        support_labels, query_labels, support_order = draw_layout(
            rng, count, self.ways, shots, queries
        )
        means = rng.standard_normal((count, self.ways, self.dim))
        classes = np.concatenate([support_labels, query_labels], 1)
        centers = np.take_along_axis(means, classes[..., None], 1)
        examples = centers + self.noise * rng.standard_normal(centers.shape)
        return SampledEpisodes(
            examples.astype(np.float32), support_labels, query_labels, support_order
        )

    def best_class(self, record: Record) -> int:
        """Return the most probable class of the query (the Bayes classifier)."""
        examples, labels = record["examples"], record["support_labels"]
        class_counts = np.bincount(labels, minlength=self.ways)
        class_sums = np.stack([examples[:-1][labels == way].sum(0) for way in range(self.ways)])
        posterior_means = class_sums / (class_counts + self.noise**2)[:, None]
        return int(((posterior_means - examples[-1]) ** 2).sum(-1).argmin())

    def describe(self) -> str:
        return (
            f"prototypes: {self.ways} ways, {self.shots} shots, points of {self.dim} numbers with "
            f"noise {self.noise:g}; synthetic"
        )
