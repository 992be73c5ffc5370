"""Heads, one by one: what each looks at, and how much is lost without it.

Losses are those of a run on some records, in nats a token, with the head's weights set to zero
(Michel et al. 2019, 1905.10650). Where heads look is told by the shares of their weight.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from regard.attend.attention import Attention
from regard.attend.heads import MultiHead
from regard.attend.tap import Edit, intervene, named_attentions, observe, zero
from regard.corpora.corpus import Record
from regard.encode.embed import Embedding
from regard.encode.evoformer import Gated
from regard.metric.alignment import agreement
from regard.tasks.align import Aligner, Way
from regard.tasks.translate import Translator
from regard.text.foreign import ForeignTokeniser
from regard.text.special import END
from regard.train.compare import alignment_error, planted
from regard.train.run import Run

SAMPLE = 64  # records that are looked at one by one
Name = tuple[str, int]  # of the attention, and the number of the head in it, from 0
Told = Callable[[int], None]
HOLDERS = (MultiHead, Gated)  # what has heads


class Place(NamedTuple):
    """Where a head looks: shares of its weight, and the mean distance and entropy of its rows."""

    previous: float
    same: float
    next: float
    first: float
    last: float
    separator: float  # the marks at the ends of sentences: BERT's [SEP], our </s>
    distance: float
    entropy: float  # bits


class Head(NamedTuple):
    name: Name
    rise: float  # of the loss without it
    place: Place
    aer: float | None = None  # of its links, where the data has true ones
    changes: Mapping[str, float] = MappingProxyType({})  # of the standard metrics without it


def heads_of(run: Run) -> dict[str, int]:
    """How many heads each attention has; those without heads are one."""
    holders = {id(m.attention): m.heads for m in run.model.modules() if isinstance(m, HOLDERS)}
    found = named_attentions(run.model)
    return {name: holders.get(id(attention), 0) for name, attention in found.items()}


def without(run: Run, names: Sequence[Name]) -> dict[str, Edit]:
    """Edits that take these heads away."""
    several = heads_of(run)
    found: dict[str, list[int]] = {}
    for name, head in names:
        found.setdefault(name, []).append(head)
    return {name: zero(heads if several[name] else None) for name, heads in found.items()}


def loss(run: Run, records: Sequence[Record], names: Sequence[Name] = ()) -> float:
    """Of the run on these records, in nats a token, without these heads."""
    with torch.no_grad(), intervene(run.model.eval(), without(run, names)):
        found = run.likelihood(records)
    return float(found.total) / found.tokens


def scores(run: Run, records: Sequence[Record], names: Sequence[Name] = ()) -> dict[str, float]:
    """The standard metrics without these heads; AER of the model's links, where truth is known."""
    with intervene(run.model, without(run, names)):
        found = {k: v for k, v in run.score(records).items() if isinstance(v, float)}
        if isinstance(run.task, Translator):
            rate = alignment_error(run.task, planted(records))
            found |= {} if rate is None else {"aer": rate}
    return found


def measured(
    run: Run, records: Sequence[Record], told: Told | None = None, *, scored: bool = False
) -> list[Head]:
    """Every head of the model, in its order; `scored`: also the standard metrics without each."""
    places, whole = looked(run, records[:SAMPLE]), loss(run, records)
    links, before = linked(run, records), scores(run, records) if scored else {}
    found: list[Head] = []
    for name, count in heads_of(run).items():
        for head in range(max(count, 1)):
            one = (name, head)
            rise, changes = loss(run, records, [one]) - whole, dict[str, float]()
            if scored:
                after = scores(run, records, [one])
                changes = {metric: after[metric] - before[metric] for metric in before}
            found.append(Head(one, rise, places[name][head], links.get(one), changes))
            if told is not None:
                told(1)
    return found


def linked(run: Run, records: Sequence[Record]) -> dict[Name, float]:
    """The alignment error rate of each head that looks at a source, where records carry links."""
    task, truth = run.task, planted(records)
    if truth is None or not isinstance(task, Translator) or not task.model.cross:
        return {}
    aligner = Aligner(task)
    texts = [(record["source"], record["target"]) for record in truth.records]
    ways = {
        (name, head): Way(layer, head)
        for layer, name in enumerate(task.cross)
        for head in range(aligner.heads)
    }
    found = aligner.links(texts, list(ways.values()))
    return {name: agreement(links, truth.gold).aer for name, links in zip(ways, found, strict=True)}


def looked(run: Run, records: Sequence[Record]) -> dict[str, list[Place]]:
    """In the mean over all rows; records are read one by one, so that nothing is padded."""
    rows: dict[str, list[Tensor]] = {}
    several, end = heads_of(run), end_of(run)
    for record in records:
        with torch.no_grad(), observe(run.model.eval()) as seen, reading(run.model) as read:
            run.likelihood([record])
        for name, weights in seen.whole().items():
            if several[name]:  # [… h q k]: an alignment has many rows
                table = weights.flatten(0, -4)
            else:
                table = weights if weights.ndim == 4 else weights.flatten(0, -3)[:, None]
            found = shares(table, separators(read, end, table.shape[-1]))
            rows.setdefault(name, []).append(found.transpose(1, 2).flatten(0, 1))
    means = {name: torch.cat(some).nanmean(0).nan_to_num() for name, some in rows.items()}
    return {name: [Place(*row) for row in table.tolist()] for name, table in means.items()}


@contextmanager
def reading(model: nn.Module) -> Generator[list[Tensor]]:
    """The rows of ids whose words the model looks up meanwhile."""
    read: list[Tensor] = []

    def keep(_: nn.Module, ids: tuple[Any, ...], __: Tensor) -> None:
        read.append(ids[0].flatten(0, -2) if ids[0].ndim > 1 else ids[0][None])

    tables = [m for name, m in model.named_modules() if name.split(".")[-1].endswith("words")]
    hooks = [m.register_forward_hook(keep) for m in tables if isinstance(m, Embedding)]
    try:
        yield read
    finally:
        for hook in hooks:
            hook.remove()


def end_of(run: Run) -> int:
    """The id of the mark behind a sentence."""
    for text in run.vocabularies.values():
        if isinstance(text, ForeignTokeniser) and text.special.end is not None:
            return text.special.end
    return END


def separators(read: Sequence[Tensor], end: int, keys: int) -> Tensor:
    """[k], 1 where a mark is: of the row that is as long; nan where rows do not agree."""
    found = {tuple((row == end).tolist()) for rows in read for row in rows if len(row) == keys}
    if len(found) > 1:
        return torch.full((keys,), torch.nan)
    return torch.tensor(found.pop(), dtype=torch.float32) if found else torch.zeros(keys)


def shares(weights: Tensor, marks: Tensor) -> Tensor:
    """[b h q k] -> [b h q 8], the numbers of a Place. Queries are the last of a row of as many."""
    queries, keys = weights.shape[-2:]
    at, of = torch.arange(queries)[:, None], torch.arange(keys)
    diagonals = [(weights * (of == at + by)).sum(-1) for by in (-1, 0, 1)]
    marked = (weights * marks).sum(-1)
    distance = (weights * (of - at).abs()).sum(-1)
    entropy = -(weights * weights.clamp(min=1e-12).log2()).sum(-1)
    ends = [weights[..., 0], weights[..., -1]]
    return torch.stack([*diagonals, *ends, marked, distance, entropy], -1)


def order(heads: Sequence[Head]) -> list[Name]:
    """The least missed first: in this order they are taken away."""
    return [one.name for one in sorted(heads, key=lambda one: one.rise)]


@torch.no_grad()
def take_away(run: Run, names: Sequence[Name]) -> None:
    """Heads that read nothing from now on: their values are zero, and so what they say.

    The sizes of the model stay: the run loads and exports as before.
    """
    holders = {m.attention: m for m in run.model.modules() if isinstance(m, HOLDERS)}
    attentions: dict[str, Attention] = named_attentions(run.model)
    for name, head in names:
        holder = holders.get(attentions[name])
        if holder is None:
            raise ValueError(f"{name} has no heads to take away")
        if holder.groups != holder.heads:
            raise ValueError(f"{name}: heads share their values; none can be taken away alone")
        rows = slice(head * holder.head_dim, (head + 1) * holder.head_dim)
        holder.to_value.weight[rows] = 0
        if holder.biased:
            holder.to_value.bias[rows] = 0
