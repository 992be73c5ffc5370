"""A record of attention: weights with the words that looked and were looked at, as plain arrays.

    AttentionMap(weights, queries, keys)     from anywhere: arrays, tensors, one or many layers
    map.save("map.npz"); AttentionMap.load("map.npz")

l: layers   h: heads   q: queries   k: keys
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from regard.metric.alignment import Agreement, agreement, best_links
from regard.view.more import NOTHING, More

Kind = Literal["self", "cross", "pool", "grid", "memory"]
Weights = NDArray[np.float32]
SPECIAL = re.compile(r"<[^<>]+>|\[[A-Z]+\]")  # <s>, [CLS]
UNKNOWN = ("<unk>", "[UNK]")  # a word all the same
LEAK = 1e-3  # how far from 1 a row may sum before it is no attention


@dataclass(frozen=True)
class Layer:
    """One attention of a model: [h q k]. A row sums to 1, or to 0 where nothing could be seen.

    A row of local-p attention sums to less (Luong et al. 2015), one of a gate to whatever it lets
    through: it is shown as it is.
    """

    name: str
    weights: Weights
    kind: Kind = "cross"

    @property
    def heads(self) -> int:
        return self.weights.shape[0]


@dataclass(frozen=True)
class Words:
    """Tokens of one side, and the number of the word that each is a piece of."""

    tokens: tuple[str, ...]
    word: tuple[int, ...] = field(default=())

    def __post_init__(self) -> None:
        if not self.word:
            object.__setattr__(self, "word", tuple(range(len(self.tokens))))
        if len(self.word) != len(self.tokens):
            raise ValueError(f"{len(self.word)} word numbers for {len(self.tokens)} tokens")
        if any(b - a not in (0, 1) for a, b in zip(self.word, self.word[1:], strict=False)):
            raise ValueError("word numbers must rise one by one, pieces of a word together")

    def merged(self) -> tuple[str, ...]:
        """Pieces put together; marks of a piece (##, a leading space or its sign) are left out."""
        found: list[str] = []
        for number, (token, word) in enumerate(zip(self.tokens, self.word, strict=True)):
            if number and word == self.word[number - 1]:
                found[-1] += token.removeprefix("##")
            else:
                found.append(token.lstrip("▁Ġ "))
        return tuple(found)


class AttentionMap:
    """Every weight that was paid in one reading, by layer and head.

    `weights`: [q k], [h q k], [l h q k], or a sequence or mapping of layers, as arrays or tensors;
    an axis of one example before the heads is taken off. `queries` and `keys` are tokens; `keys`
    not given: the queries look at themselves. `pieces`: for tokens that are parts of words, the
    number of the word of each, of the queries and of the keys; not given, their marks tell.
    `picture`: a PNG that a map of the kind "grid" lies over, whose queries and keys are places.
    `more`: links that people made, what else might have been said, what a search tried.
    """

    def __init__(
        self,
        weights: Any,
        queries: Sequence[str],
        keys: Sequence[str] | None = None,
        *,
        kind: Kind | None = None,
        pieces: tuple[Sequence[int], Sequence[int]] | None = None,
        title: str = "",
        picture: bytes | None = None,
        more: More = NOTHING,
    ):
        chosen: Kind = kind or ("self" if keys is None else "cross")
        if chosen not in get_args(Kind):
            raise ValueError(f"kind must be one of {', '.join(get_args(Kind))}, not {chosen!r}")
        both = tuple(queries), tuple(queries if keys is None else keys)
        of_queries, of_keys = pieces or (word_numbers(both[0]), word_numbers(both[1]))
        self.queries, self.keys = Words(both[0], tuple(of_queries)), Words(both[1], tuple(of_keys))
        self.title, self.picture = title, picture
        self.layers = tuple(
            Layer(name, self._checked(name, layer), chosen) for name, layer in layered(weights)
        )
        if not self.layers:
            raise ValueError("weights are missing: there is no layer")
        self.more = more
        if more.choices and len(more.choices) != len(both[0]):
            raise ValueError(f"choices of {len(more.choices)} steps for {len(both[0])} queries")
        if more.gold is not None:
            check_links(more.gold.possible, *map(len, self.plain_words()[::-1]))

    def _checked(self, name: str, weights: Weights) -> Weights:
        wanted = (len(self.queries.tokens), len(self.keys.tokens))
        if weights.shape[1:] != wanted:
            sizes = " x ".join(map(str, weights.shape[1:]))
            raise ValueError(
                f"{name}: weights of {sizes} for {wanted[0]} queries and {wanted[1]} keys"
            )
        if not np.isfinite(weights).all() or (weights < 0).any():
            raise ValueError(f"{name}: weights must be finite, and 0 or more")
        if weights.size and weights.sum(-1).max() > 1 + LEAK:
            most = f"{name}: a row sums to {weights.sum(-1).max():.3f}, more than 1"
            raise ValueError(f"{most}; weights are those before dropout: call eval() first")
        return weights

    def merged(self) -> "AttentionMap":
        """By words: what one looked at is the mean of its pieces, what it got is their sum."""
        into, out = grouping(self.queries.word), grouping(self.keys.word)
        mean = into / into.sum(1, keepdims=True)
        layers = {one.name: mean @ one.weights @ out.T for one in self.layers}
        return self._like(layers, self.queries.merged(), self.keys.merged())

    def mean(self) -> "AttentionMap":
        """One layer of one head: the mean of all."""
        whole = np.concatenate([one.weights for one in self.layers])
        return self._like({"mean": whole.mean(0, keepdims=True)}, *self._sides())

    def rollout(self) -> "AttentionMap":
        """From the input to the output of each layer, through all before (Abnar & Zuidema 2020).

        A layer is the mean of its heads and the identity, half each; layers are multiplied.
        """
        if self.queries.tokens != self.keys.tokens:
            raise ValueError("rollout is for layers in which the same tokens look at each other")
        whole, found = np.eye(len(self.keys.tokens), dtype=np.float32), {}
        for one in self.layers:
            step = 0.5 * one.weights.mean(0) + 0.5 * np.eye(len(whole), dtype=np.float32)
            whole = (step / step.sum(-1, keepdims=True)) @ whole
            found[one.name] = whole[None]
        return self._like(found, *self._sides())

    def entropy(self) -> list[NDArray[np.float32]]:
        """Of each layer, each head's mean over its rows, in bits; of a grid, over all of it."""
        return [
            -(rows * np.log2(rows, where=rows > 0, out=np.zeros_like(rows))).sum(-1).mean(-1)
            for rows in map(looks, self.layers)
        ]

    def distance(self) -> list[NDArray[np.float32]]:
        """Of each layer, how far each head looks on average, in tokens."""
        apart = np.abs(
            np.arange(len(self.queries.tokens))[:, None] - np.arange(len(self.keys.tokens))
        )
        return [(one.weights * apart.astype(np.float32)).sum(-1).mean(-1) for one in self.layers]

    def plain_words(self) -> tuple[list[int], list[int]]:
        """Numbers of the words of queries and keys that are none of a model's own signs."""
        queries, keys = (
            [n for n, word in enumerate(side.merged()) if word in UNKNOWN or not is_sign(word)]
            for side in (self.queries, self.keys)
        )
        return queries, keys

    def agreements(self) -> list[list[Agreement]]:
        """Of each layer and head: what each word looked at most, against the gold links."""
        gold = self.more.gold
        if gold is None:
            raise ValueError("gold links are missing: give more=More(gold=…), or --gold")
        queries, keys = self.plain_words()
        return [
            [agreement([best_links(one[np.ix_(queries, keys)])], [gold]) for one in layer.weights]
            for layer in self.merged().layers
        ]

    def pick(self, layer: int | None = None, head: int | None = None) -> "AttentionMap":
        """Of one layer, one head, or both only; they are counted from 1."""
        layers = self.layers
        if layer is not None:
            check_place("layer", layer, len(layers))
            layers = layers[layer - 1 : layer]
        if head is not None:
            check_place("head", head, min(one.heads for one in layers))
            return self._like(
                {one.name: one.weights[head - 1 : head] for one in layers}, *self._sides()
            )
        return self._like({one.name: one.weights for one in layers}, *self._sides())

    def save(self, path: Path | str) -> None:
        """As its ending says: .html, .png, .svg, .pdf, .npz, .json, .csv, .tex or .pharaoh."""
        from regard.view.files import save

        save(self, Path(path))

    @classmethod
    def load(cls, path: Path | str) -> "AttentionMap":
        """What was saved as .npz or .json."""
        from regard.view.files import load

        return load(Path(path))

    def _repr_html_(self) -> str:
        """In a notebook: the page, in a frame of its own, so that neither disturbs the other."""
        from regard.view.page import framed

        return framed(self)

    def _sides(self) -> tuple[Sequence[str], Sequence[str]]:
        return self.queries.tokens, self.keys.tokens

    def _like(
        self, layers: Mapping[str, Weights], queries: Sequence[str], keys: Sequence[str]
    ) -> "AttentionMap":
        pieces, more = None, self.more
        if (queries, keys) == self._sides():
            pieces = (self.queries.word, self.keys.word)
        elif len(queries) != len(more.choices):
            more = replace(more, choices=())  # they are of pieces
        return AttentionMap(
            layers,
            queries,
            keys,
            kind=self.layers[0].kind,
            pieces=pieces,
            title=self.title,
            picture=self.picture,
            more=more,
        )


def word_numbers(tokens: Sequence[str]) -> list[int]:
    """Which word each token is of, by the marks of WordPiece, SentencePiece or byte-level BPE."""
    if any(token.startswith("##") for token in tokens):
        begins = [not token.startswith("##") for token in tokens]
    elif any(token.startswith(("▁", "Ġ")) for token in tokens):
        begins = [token.startswith(("▁", "Ġ")) for token in tokens]
    else:
        return list(range(len(tokens)))
    found: list[int] = []
    for number, (token, begin) in enumerate(zip(tokens, begins, strict=True)):
        after = number and SPECIAL.fullmatch(tokens[number - 1])
        apart = begin or after or SPECIAL.fullmatch(token)
        found.append(found[-1] + bool(apart) if found else 0)
    return found


def is_sign(token: str) -> bool:
    """One of a model's own, such as the end."""
    return SPECIAL.fullmatch(token) is not None


def check_place(name: str, place: int, most: int) -> None:
    if not 1 <= place <= most:
        raise ValueError(f"{name} must be from 1 to {most}, not {place}")


def check_links(links: Iterable[tuple[int, int]], keys: int, queries: int) -> None:
    for key, query in links:
        if key >= keys or query >= queries:
            sizes = f"there are {keys} words that are looked at and {queries} that look"
            raise ValueError(f"gold link {key}-{query}: {sizes}, counted from 0")


def looks(layer: Layer) -> Weights:
    """[h q k]; a grid is one look, whose rows and columns are places."""
    if layer.kind != "grid":
        return layer.weights
    return layer.weights.reshape(layer.heads, 1, -1)


def layered(weights: Any) -> list[tuple[str, Weights]]:
    """Layers by name, each [h q k]."""
    if isinstance(weights, Mapping):
        return [(str(name), of_heads(layer)) for name, layer in weights.items()]
    if isinstance(weights, list | tuple) and weights and np.ndim(plain(weights[0])) >= 2:
        return [(f"layer {n}", of_heads(layer)) for n, layer in enumerate(weights, 1)]
    whole = plain(weights)
    if whole.ndim == 4:
        return [(f"layer {n}", of_heads(layer)) for n, layer in enumerate(whole, 1)]
    return [("layer 1", of_heads(whole))]


def of_heads(layer: Any) -> Weights:
    found = plain(layer)
    if found.ndim == 4 and found.shape[0] == 1:
        found = found[0]
    if found.ndim == 2:
        found = found[None]
    if found.ndim != 3:
        raise ValueError(
            f"weights of a layer are [heads, queries, keys], not of shape {found.shape}"
        )
    return found


def plain(array: Any) -> Weights:
    """As numpy has it, wherever it was."""
    if hasattr(array, "detach"):  # a tensor
        array = array.detach().cpu().float().numpy()
    return np.asarray(array, dtype=np.float32)


def grouping(word: Sequence[int]) -> Weights:
    """[words, tokens], 1 where a token is a piece of the word."""
    numbers = np.asarray(word) - (word[0] if len(word) else 0)
    return (
        (np.arange(numbers[-1] + 1)[:, None] == numbers).astype(np.float32)
        if len(word)
        else (np.zeros((0, 0), np.float32))
    )
