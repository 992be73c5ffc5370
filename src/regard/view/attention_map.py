"""Recorded attention as plain arrays, with the tokens of its queries and keys.

    AttentionMap(weights, queries, keys)     from anywhere: arrays, tensors, one or many layers
    map.save("map.npz"); AttentionMap.load("map.npz")

l: layers   h: heads   q: queries   k: keys
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from regard.errors import InputError
from regard.metrics.alignment import Agreement, agreement, best_links
from regard.metrics.alignment_files import parse_gold
from regard.view.annotations import NO_ANNOTATIONS, MapAnnotations
from regard.view.layer_names import layer_label

AttentionKind = Literal["self", "cross", "pool", "grid", "memory"]
WeightArray = NDArray[np.float32]
WeightsLike = ArrayLike | Sequence[ArrayLike] | Mapping[str, ArrayLike]
"""One array or tensor, or a sequence or mapping of layers."""
SPECIAL_TOKEN = re.compile(r"<[^<>]+>|\[[A-Z]+\]")  # <s>, [CLS]
UNKNOWN_TOKENS = ("<unk>", "[UNK]")  # they stand for words, unlike other special tokens
ROW_SUM_TOLERANCE = 1e-3  # how much a row may sum to above 1


@dataclass(frozen=True)
class AttentionLayer:
    """One attention of a model: [h q k]. A row sums to 1, or to 0 if all its keys are masked.

    Rows of local-p attention (Luong et al. 2015) and of gated attention may sum to less.
    """

    name: str
    weights: WeightArray
    kind: AttentionKind = "cross"

    @property
    def heads(self) -> int:
        return self.weights.shape[0]

    @property
    def label(self) -> str:
        """The name for a reader: `Decoder 1, cross-attention`, if `name` is a module path."""
        return layer_label(self.name)


@dataclass(frozen=True)
class TokenSequence:
    """The tokens of queries or keys, and the index of the word that each belongs to."""

    tokens: tuple[str, ...]
    word_ids: tuple[int, ...] = field(default=())

    def __post_init__(self) -> None:
        if not self.word_ids:
            object.__setattr__(self, "word_ids", tuple(range(len(self.tokens))))
        if len(self.word_ids) != len(self.tokens):
            raise InputError(
                f"word_ids has {len(self.word_ids)} numbers for {len(self.tokens)} tokens; "
                "give one each"
            )
        if any(b - a not in (0, 1) for a, b in zip(self.word_ids, self.word_ids[1:], strict=False)):
            raise InputError("word_ids must be equal or rise by 1 from token to token")

    def words(self) -> tuple[str, ...]:
        """Return the words, without the marks of subwords (## or a leading ▁, Ġ or space)."""
        words: list[str] = []
        for index, (token, word) in enumerate(zip(self.tokens, self.word_ids, strict=True)):
            if index and word == self.word_ids[index - 1]:
                words[-1] += token.removeprefix("##")
            else:
                words.append(token.lstrip("▁Ġ "))
        return tuple(words)


class AttentionMap:
    """The attention weights of one input, by layer and head.

    - `weights`: [q k], [h q k], [l h q k], or a sequence or mapping of layers, as arrays or
      tensors. A batch axis of size one before the heads is removed.
    - `queries` and `keys`: tokens. Without `keys`, the queries attend to themselves.
    - `word_ids`: for each token of queries and keys, the index of its word. By default, it is
      inferred from the marks of subwords.
    - `image`: the PNG below a map of kind "grid", whose queries and keys are rows and columns.
    - `reader`: what attends in a map of kind "grid", such as "the class token"; the rest of its
      weight is on itself. Without it, each layer is named after its query.
    - `annotations`: gold links, alternative tokens, the tree of a search.

    A notebook shows a map as its last expression. `save` writes HTML, SVG, PNG, PDF, JSON and more.

    >>> weights = [[0.9, 0.1], [0.2, 0.8]]
    >>> attention = AttentionMap(weights, queries=["eins", "zwei"], keys=["one", "two"])
    >>> attention
    AttentionMap(layers=1, heads=1, queries=2, keys=2)
    >>> attention.save("map.json")
    >>> AttentionMap.load("map.json").queries.tokens
    ('eins', 'zwei')
    """

    def __init__(
        self,
        weights: WeightsLike,
        queries: Sequence[str],
        keys: Sequence[str] | None = None,
        *,
        kind: AttentionKind | None = None,
        word_ids: tuple[Sequence[int], Sequence[int]] | None = None,
        title: str = "",
        image: bytes | None = None,
        reader: str = "",
        annotations: MapAnnotations = NO_ANNOTATIONS,
    ):
        resolved_kind: AttentionKind = kind or ("self" if keys is None else "cross")
        if resolved_kind not in get_args(AttentionKind):
            raise InputError(
                f"kind must be one of {', '.join(get_args(AttentionKind))}, not {resolved_kind!r}"
            )
        sides = tuple(queries), tuple(queries if keys is None else keys)
        query_word_ids, key_word_ids = word_ids or (
            infer_word_ids(sides[0]),
            infer_word_ids(sides[1]),
        )
        self.queries, self.keys = (
            TokenSequence(sides[0], tuple(query_word_ids)),
            TokenSequence(sides[1], tuple(key_word_ids)),
        )
        self.title, self.image, self.reader = title, image, reader
        self.layers = tuple(
            AttentionLayer(name, self._check_weights(name, layer), resolved_kind)
            for name, layer in named_layers(weights)
        )
        if not self.layers:
            raise InputError("weights has no layer; give at least one")
        self.annotations = annotations
        steps = len(self.layers if resolved_kind == "grid" else sides[0])
        if annotations.choices and len(annotations.choices) != steps:
            steps_name = "layers" if resolved_kind == "grid" else "queries"
            raise InputError(
                f"annotations.choices has {len(annotations.choices)} steps for {steps} "
                f"{steps_name}; give one each"
            )
        if annotations.gold is not None:
            check_gold_links(
                annotations.gold.possible, *map(len, self.content_word_indices()[::-1])
            )

    def _check_weights(self, name: str, weights: WeightArray) -> WeightArray:
        expected_shape = (len(self.queries.tokens), len(self.keys.tokens))
        if weights.shape[1:] != expected_shape:
            sizes = " x ".join(map(str, weights.shape[1:]))
            raise InputError(
                f"{name}: weights are {sizes}, but there are {expected_shape[0]} queries and "
                f"{expected_shape[1]} keys"
            )
        if not np.isfinite(weights).all() or (weights < 0).any():
            raise InputError(f"{name}: weights must be finite, and 0 or more")
        if weights.size and weights.sum(-1).max() > 1 + ROW_SUM_TOLERANCE:
            message = f"{name}: a row sums to {weights.sum(-1).max():.3f}, more than 1"
            raise InputError(f"{message}; record weights in evaluation mode, without dropout")
        return weights

    def with_gold(self, links: str) -> "AttentionMap":
        """Return the map with gold links between source and target words, as `0-0 1-2 2?1`."""
        if self.layers[0].kind != "cross":
            raise InputError("--gold needs attention from a target to a source; leave it out")
        annotations = replace(self.annotations, gold=parse_gold(links, "--gold"))
        return AttentionMap(
            {layer.name: layer.weights for layer in self.layers},
            self.queries.tokens,
            self.keys.tokens,
            kind=self.layers[0].kind,
            word_ids=(self.queries.word_ids, self.keys.word_ids),
            title=self.title,
            image=self.image,
            reader=self.reader,
            annotations=annotations,
        )

    def merge_subwords(self) -> "AttentionMap":
        """Return the map by words: the mean over the subwords of a query, the sum over a key."""
        queries, keys = word_starts(self.queries.word_ids), word_starts(self.keys.word_ids)
        lengths = np.diff(np.append(queries, len(self.queries.tokens)))[:, None]
        layers: dict[str, WeightArray] = {}
        for layer in self.layers:
            sums = np.add.reduceat(np.add.reduceat(layer.weights, keys, -1), queries, -2)
            layers[layer.name] = (sums / lengths).astype(np.float32)
        return self._with_layers(layers, self.queries.words(), self.keys.words())

    def mean(self) -> "AttentionMap":
        """Return a map with one layer and one head: the mean of all."""
        all_heads = np.concatenate([layer.weights for layer in self.layers])
        return self._with_layers({"mean": all_heads.mean(0, keepdims=True)}, *self._tokens())

    def rollout(self) -> "AttentionMap":
        """R_l = (A_l + I) / 2 . R_{l-1}: from the input to the output of each layer.

        A_l is the mean of the heads of layer l (Abnar & Zuidema 2020).
        """
        if self.queries.tokens != self.keys.tokens:
            raise InputError("rollout needs self-attention; this map has other queries than keys")
        product, layers = np.eye(len(self.keys.tokens), dtype=np.float32), {}
        for layer in self.layers:
            step = 0.5 * layer.weights.mean(0) + 0.5 * np.eye(len(product), dtype=np.float32)
            product = (step / step.sum(-1, keepdims=True)) @ product
            layers[layer.name] = product[None]
        return self._with_layers(layers, *self._tokens())

    def entropy(self) -> list[NDArray[np.float32]]:
        """Return the mean entropy of the rows of each head, in bits; a grid is one row."""
        return [
            -(rows * np.log2(rows, where=rows > 0, out=np.zeros_like(rows))).sum(-1).mean(-1)
            for rows in map(attention_rows, self.layers)
        ]

    def distance(self) -> list[NDArray[np.float32]]:
        """Return the mean distance between query and key of each head, in tokens."""
        distances = np.abs(
            np.arange(len(self.queries.tokens))[:, None] - np.arange(len(self.keys.tokens))
        )
        return [
            (layer.weights * distances.astype(np.float32)).sum(-1).mean(-1) for layer in self.layers
        ]

    def content_word_indices(self) -> tuple[list[int], list[int]]:
        """Return the indices of the words of queries and keys that are no special tokens."""
        queries, keys = (
            [
                n
                for n, word in enumerate(side.words())
                if word in UNKNOWN_TOKENS or not is_special(word)
            ]
            for side in (self.queries, self.keys)
        )
        return queries, keys

    def agreements(self) -> list[list[Agreement]]:
        """Compare the strongest link of each word with the gold links, by layer and head."""
        gold = self.annotations.gold
        if gold is None:
            raise InputError(
                "gold links are missing; give annotations=MapAnnotations(gold=…), or --gold"
            )
        queries, keys = self.content_word_indices()
        return [
            [
                agreement([best_links(head_weights[np.ix_(queries, keys)])], [gold])
                for head_weights in layer.weights
            ]
            for layer in self.merge_subwords().layers
        ]

    def pick(self, layer: int | None = None, head: int | None = None) -> "AttentionMap":
        """Return the map of one layer, one head, or both; they count from 1."""
        layers = self.layers
        if layer is not None:
            check_number("layer", layer, len(layers))
            layers = layers[layer - 1 : layer]
        if head is not None:
            check_number("head", head, min(attention_layer.heads for attention_layer in layers))
            return self._with_layers(
                {
                    attention_layer.name: attention_layer.weights[head - 1 : head]
                    for attention_layer in layers
                },
                *self._tokens(),
            )
        return self._with_layers(
            {attention_layer.name: attention_layer.weights for attention_layer in layers},
            *self._tokens(),
        )

    def save(self, path: Path | str) -> None:
        """Write a file; the suffix decides the format.

        It is .html, .png, .svg, .pdf, .npz, .json, .csv, .tex or .pharaoh.
        """
        from regard.view.export import save

        save(self, Path(path))

    @classmethod
    def load(cls, path: Path | str) -> "AttentionMap":
        """Read a file that was saved as .npz or .json."""
        from regard.view.export import load

        return load(Path(path))

    def __repr__(self) -> str:
        heads = max(layer.weights.shape[0] for layer in self.layers)
        queries, keys = len(self.queries.tokens), len(self.keys.tokens)
        layers = len(self.layers)
        return f"AttentionMap(layers={layers}, heads={heads}, queries={queries}, keys={keys})"

    def _repr_html_(self) -> str:
        """Return the page in a frame, for a notebook."""
        from regard.view.page import html_frame

        return html_frame(self)

    def _tokens(self) -> tuple[Sequence[str], Sequence[str]]:
        return self.queries.tokens, self.keys.tokens

    def _with_layers(
        self, layers: Mapping[str, WeightArray], queries: Sequence[str], keys: Sequence[str]
    ) -> "AttentionMap":
        word_ids, annotations = None, self.annotations
        if (queries, keys) == self._tokens():
            word_ids = (self.queries.word_ids, self.keys.word_ids)
        steps = len(layers if self.layers[0].kind == "grid" else queries)
        if steps != len(annotations.choices):
            annotations = replace(annotations, choices=())  # they belong to subwords, or layers
        return AttentionMap(
            layers,
            queries,
            keys,
            kind=self.layers[0].kind,
            word_ids=word_ids,
            title=self.title,
            image=self.image,
            reader=self.reader,
            annotations=annotations,
        )


def infer_word_ids(tokens: Sequence[str]) -> list[int]:
    """Return the word of each token, by the marks of WordPiece, SentencePiece or byte-level BPE."""
    if any(token.startswith("##") for token in tokens):
        begins_word = [not token.startswith("##") for token in tokens]
    elif any(token.startswith(("▁", "Ġ")) for token in tokens):
        begins_word = [token.startswith(("▁", "Ġ")) for token in tokens]
    else:
        return list(range(len(tokens)))
    word_ids: list[int] = []
    for index, (token, begins) in enumerate(zip(tokens, begins_word, strict=True)):
        follows_special = index > 0 and ends_word(tokens[index - 1])
        starts_word = begins or follows_special or ends_word(token)
        word_ids.append(word_ids[-1] + bool(starts_word) if word_ids else 0)
    return word_ids


def is_special(token: str) -> bool:
    """Return whether a token looks like <s> or [CLS]."""
    return SPECIAL_TOKEN.fullmatch(token) is not None


def ends_word(token: str) -> bool:
    """Return whether a token is special, and no unknown piece of a word."""
    return token not in UNKNOWN_TOKENS and is_special(token)


def check_number(name: str, number: int, maximum: int) -> None:
    if not 1 <= number <= maximum:
        raise InputError(f"{name} must be from 1 to {maximum}, not {number}")


def check_gold_links(links: Iterable[tuple[int, int]], keys: int, queries: int) -> None:
    for key, query in links:
        if key >= keys or query >= queries:
            sizes = f"there are {keys} source words and {queries} target words"
            raise InputError(f"gold link {key}-{query}: {sizes}; count from 0")


def attention_rows(layer: AttentionLayer) -> WeightArray:
    """Return the distributions of a layer as [h q k]; a grid is one distribution."""
    if layer.kind != "grid":
        return layer.weights
    return layer.weights.reshape(layer.heads, 1, -1)


def named_layers(weights: WeightsLike) -> list[tuple[str, WeightArray]]:
    """Return names and weights of layers, each [h q k]."""
    if isinstance(weights, Mapping):
        return [(str(name), with_head_axis(layer)) for name, layer in weights.items()]
    if isinstance(weights, list | tuple) and weights and np.ndim(to_numpy(weights[0])) >= 2:
        return [(f"layer {n}", with_head_axis(layer)) for n, layer in enumerate(weights, 1)]
    array = to_numpy(weights)
    if array.ndim == 4:
        return [(f"layer {n}", with_head_axis(layer)) for n, layer in enumerate(array, 1)]
    return [("layer 1", with_head_axis(array))]


def with_head_axis(layer: ArrayLike) -> WeightArray:
    array = to_numpy(layer)
    if array.ndim == 4 and array.shape[0] == 1:
        array = array[0]
    if array.ndim == 2:
        array = array[None]
    if array.ndim != 3:
        raise InputError(
            f"weights of a layer must have the shape [heads, queries, keys], not {array.shape}"
        )
    return array


def to_numpy(array: WeightsLike) -> WeightArray:
    """Convert an array or a tensor of any device to numpy."""
    detach = getattr(array, "detach", None)  # of a tensor; view does not import torch
    return np.asarray(array if detach is None else detach().cpu().float(), dtype=np.float32)


def word_starts(word_ids: Sequence[int]) -> NDArray[np.intp]:
    """Return the index of the first token of each word."""
    numbers = np.asarray(word_ids, dtype=np.intp)
    return np.flatnonzero(np.diff(numbers, prepend=-1))
