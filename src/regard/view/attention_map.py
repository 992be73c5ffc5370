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

from regard.metrics.alignment import Agreement, agreement, best_links
from regard.metrics.alignment_files import parse_gold
from regard.view.annotations import NO_ANNOTATIONS, MapAnnotations

AttentionKind = Literal["self", "cross", "pool", "grid", "memory"]
WeightArray = NDArray[np.float32]
SPECIAL_TOKEN = re.compile(r"<[^<>]+>|\[[A-Z]+\]")  # <s>, [CLS]
UNKNOWN_TOKENS = ("<unk>", "[UNK]")  # a word all the same
ROW_SUM_TOLERANCE = 1e-3  # how far from 1 a row may sum before it is no attention


@dataclass(frozen=True)
class AttentionLayer:
    """One attention of a model: [h q k]. A row sums to 1, or to 0 where nothing could be seen.

    A row of local-p attention sums to less (Luong et al. 2015), one of a gate to whatever it lets
    through: it is shown as it is.
    """

    name: str
    weights: WeightArray
    kind: AttentionKind = "cross"

    @property
    def heads(self) -> int:
        return self.weights.shape[0]


@dataclass(frozen=True)
class TokenSequence:
    """Tokens of one side, and the number of the word that each is a piece of."""

    tokens: tuple[str, ...]
    word_ids: tuple[int, ...] = field(default=())

    def __post_init__(self) -> None:
        if not self.word_ids:
            object.__setattr__(self, "word", tuple(range(len(self.tokens))))
        if len(self.word_ids) != len(self.tokens):
            raise ValueError(f"{len(self.word_ids)} word numbers for {len(self.tokens)} tokens")
        if any(b - a not in (0, 1) for a, b in zip(self.word_ids, self.word_ids[1:], strict=False)):
            raise ValueError("word numbers must rise one by one, pieces of a word together")

    def words(self) -> tuple[str, ...]:
        """Pieces put together; marks of a piece (##, a leading space or its sign) are left out."""
        words: list[str] = []
        for index, (token, word) in enumerate(zip(self.tokens, self.word_ids, strict=True)):
            if index and word == self.word_ids[index - 1]:
                words[-1] += token.removeprefix("##")
            else:
                words.append(token.lstrip("▁Ġ "))
        return tuple(words)


class AttentionMap:
    """Every weight that was paid in one reading, by layer and head.

    `weights`: [q k], [h q k], [l h q k], or a sequence or mapping of layers, as arrays or tensors;
    an axis of one example before the heads is taken off. `queries` and `keys` are tokens; `keys`
    not given: the queries look at themselves. `pieces`: for tokens that are parts of words, the
    number of the word of each, of the queries and of the keys; not given, their marks tell.
    `image`: a PNG that a map of the kind "grid" lies over, whose queries and keys are places.
    `more`: links that people made, what else might have been said, what a search tried.
    """

    def __init__(
        self,
        weights: Any,
        queries: Sequence[str],
        keys: Sequence[str] | None = None,
        *,
        kind: AttentionKind | None = None,
        word_ids: tuple[Sequence[int], Sequence[int]] | None = None,
        title: str = "",
        image: bytes | None = None,
        annotations: MapAnnotations = NO_ANNOTATIONS,
    ):
        resolved_kind: AttentionKind = kind or ("self" if keys is None else "cross")
        if resolved_kind not in get_args(AttentionKind):
            raise ValueError(
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
        self.title, self.image = title, image
        self.layers = tuple(
            AttentionLayer(name, self._check_weights(name, layer), resolved_kind)
            for name, layer in named_layers(weights)
        )
        if not self.layers:
            raise ValueError("weights are missing: there is no layer")
        self.annotations = annotations
        if annotations.choices and len(annotations.choices) != len(sides[0]):
            raise ValueError(
                f"choices of {len(annotations.choices)} steps for {len(sides[0])} queries"
            )
        if annotations.gold is not None:
            check_gold_links(
                annotations.gold.possible, *map(len, self.content_word_indices()[::-1])
            )

    def _check_weights(self, name: str, weights: WeightArray) -> WeightArray:
        expected_shape = (len(self.queries.tokens), len(self.keys.tokens))
        if weights.shape[1:] != expected_shape:
            sizes = " x ".join(map(str, weights.shape[1:]))
            raise ValueError(
                f"{name}: weights of {sizes} for {expected_shape[0]} queries and "
                f"{expected_shape[1]} keys"
            )
        if not np.isfinite(weights).all() or (weights < 0).any():
            raise ValueError(f"{name}: weights must be finite, and 0 or more")
        if weights.size and weights.sum(-1).max() > 1 + ROW_SUM_TOLERANCE:
            message = f"{name}: a row sums to {weights.sum(-1).max():.3f}, more than 1"
            raise ValueError(f"{message}; weights are those before dropout: call eval() first")
        return weights

    def with_gold(self, links: str) -> "AttentionMap":
        """Return the map with gold links between source and target words, as `0-0 1-2 2?1`."""
        if self.layers[0].kind != "cross":
            raise ValueError("--gold needs attention between a source and a target")
        annotations = replace(self.annotations, gold=parse_gold(links, "--gold"))
        return AttentionMap(
            {layer.name: layer.weights for layer in self.layers},
            self.queries.tokens,
            self.keys.tokens,
            kind=self.layers[0].kind,
            word_ids=(self.queries.word_ids, self.keys.word_ids),
            title=self.title,
            image=self.image,
            annotations=annotations,
        )

    def merge_subwords(self) -> "AttentionMap":
        """By words: what one looked at is the mean of its pieces, what it got is their sum."""
        query_groups, key_groups = (
            word_token_matrix(self.queries.word_ids),
            word_token_matrix(self.keys.word_ids),
        )
        mean = query_groups / query_groups.sum(1, keepdims=True)
        layers = {layer.name: mean @ layer.weights @ key_groups.T for layer in self.layers}
        return self._with_layers(layers, self.queries.words(), self.keys.words())

    def mean(self) -> "AttentionMap":
        """One layer of one head: the mean of all."""
        all_heads = np.concatenate([layer.weights for layer in self.layers])
        return self._with_layers({"mean": all_heads.mean(0, keepdims=True)}, *self._tokens())

    def rollout(self) -> "AttentionMap":
        """From the input to the output of each layer, through all before (Abnar & Zuidema 2020).

        A layer is the mean of its heads and the identity, half each; layers are multiplied.
        """
        if self.queries.tokens != self.keys.tokens:
            raise ValueError("rollout is for layers in which the same tokens look at each other")
        product, layers = np.eye(len(self.keys.tokens), dtype=np.float32), {}
        for layer in self.layers:
            step = 0.5 * layer.weights.mean(0) + 0.5 * np.eye(len(product), dtype=np.float32)
            product = (step / step.sum(-1, keepdims=True)) @ product
            layers[layer.name] = product[None]
        return self._with_layers(layers, *self._tokens())

    def entropy(self) -> list[NDArray[np.float32]]:
        """Of each layer, each head's mean over its rows, in bits; of a grid, over all of it."""
        return [
            -(rows * np.log2(rows, where=rows > 0, out=np.zeros_like(rows))).sum(-1).mean(-1)
            for rows in map(attention_rows, self.layers)
        ]

    def distance(self) -> list[NDArray[np.float32]]:
        """Of each layer, how far each head looks on average, in tokens."""
        distances = np.abs(
            np.arange(len(self.queries.tokens))[:, None] - np.arange(len(self.keys.tokens))
        )
        return [
            (layer.weights * distances.astype(np.float32)).sum(-1).mean(-1) for layer in self.layers
        ]

    def content_word_indices(self) -> tuple[list[int], list[int]]:
        """Numbers of the words of queries and keys that are none of a model's own signs."""
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
        """Of each layer and head: what each word looked at most, against the gold links."""
        gold = self.annotations.gold
        if gold is None:
            raise ValueError(
                "gold links are missing: give annotations=MapAnnotations(gold=…), or --gold"
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
        """Of one layer, one head, or both only; they are counted from 1."""
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
        """As its ending says: .html, .png, .svg, .pdf, .npz, .json, .csv, .tex or .pharaoh."""
        from regard.view.export import save

        save(self, Path(path))

    @classmethod
    def load(cls, path: Path | str) -> "AttentionMap":
        """What was saved as .npz or .json."""
        from regard.view.export import load

        return load(Path(path))

    def _repr_html_(self) -> str:
        """In a notebook: the page, in a frame of its own, so that neither disturbs the other."""
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
        elif len(queries) != len(annotations.choices):
            annotations = replace(annotations, choices=())  # they are of pieces
        return AttentionMap(
            layers,
            queries,
            keys,
            kind=self.layers[0].kind,
            word_ids=word_ids,
            title=self.title,
            image=self.image,
            annotations=annotations,
        )


def infer_word_ids(tokens: Sequence[str]) -> list[int]:
    """Which word each token is of, by the marks of WordPiece, SentencePiece or byte-level BPE."""
    if any(token.startswith("##") for token in tokens):
        begins_word = [not token.startswith("##") for token in tokens]
    elif any(token.startswith(("▁", "Ġ")) for token in tokens):
        begins_word = [token.startswith(("▁", "Ġ")) for token in tokens]
    else:
        return list(range(len(tokens)))
    word_ids: list[int] = []
    for index, (token, begins) in enumerate(zip(tokens, begins_word, strict=True)):
        follows_special = index and SPECIAL_TOKEN.fullmatch(tokens[index - 1])
        starts_word = begins or follows_special or SPECIAL_TOKEN.fullmatch(token)
        word_ids.append(word_ids[-1] + bool(starts_word) if word_ids else 0)
    return word_ids


def is_special(token: str) -> bool:
    """One of a model's own, such as the end."""
    return SPECIAL_TOKEN.fullmatch(token) is not None


def check_number(name: str, number: int, maximum: int) -> None:
    if not 1 <= number <= maximum:
        raise ValueError(f"{name} must be from 1 to {maximum}, not {number}")


def check_gold_links(links: Iterable[tuple[int, int]], keys: int, queries: int) -> None:
    for key, query in links:
        if key >= keys or query >= queries:
            sizes = f"there are {keys} words that are looked at and {queries} that look"
            raise ValueError(f"gold link {key}-{query}: {sizes}, counted from 0")


def attention_rows(layer: AttentionLayer) -> WeightArray:
    """[h q k]; a grid is one look, whose rows and columns are places."""
    if layer.kind != "grid":
        return layer.weights
    return layer.weights.reshape(layer.heads, 1, -1)


def named_layers(weights: Any) -> list[tuple[str, WeightArray]]:
    """Layers by name, each [h q k]."""
    if isinstance(weights, Mapping):
        return [(str(name), with_head_axis(layer)) for name, layer in weights.items()]
    if isinstance(weights, list | tuple) and weights and np.ndim(to_numpy(weights[0])) >= 2:
        return [(f"layer {n}", with_head_axis(layer)) for n, layer in enumerate(weights, 1)]
    array = to_numpy(weights)
    if array.ndim == 4:
        return [(f"layer {n}", with_head_axis(layer)) for n, layer in enumerate(array, 1)]
    return [("layer 1", with_head_axis(array))]


def with_head_axis(layer: Any) -> WeightArray:
    array = to_numpy(layer)
    if array.ndim == 4 and array.shape[0] == 1:
        array = array[0]
    if array.ndim == 2:
        array = array[None]
    if array.ndim != 3:
        raise ValueError(
            f"weights of a layer are [heads, queries, keys], not of shape {array.shape}"
        )
    return array


def to_numpy(array: Any) -> WeightArray:
    """As numpy has it, wherever it was."""
    if hasattr(array, "detach"):  # a tensor
        array = array.detach().cpu().float().numpy()
    return np.asarray(array, dtype=np.float32)


def word_token_matrix(word_ids: Sequence[int]) -> WeightArray:
    """[words, tokens], 1 where a token is a piece of the word."""
    numbers = np.asarray(word_ids) - (word_ids[0] if len(word_ids) else 0)
    return (
        (np.arange(numbers[-1] + 1)[:, None] == numbers).astype(np.float32)
        if len(word_ids)
        else (np.zeros((0, 0), np.float32))
    )
