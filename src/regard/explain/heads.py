"""Measure each attention head: where it attends, and how much the loss increases without it.

A head is ablated by setting its weights to zero (Michel et al. 2019, 1905.10650). Losses are in
nats per token.
"""

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import NamedTuple

import torch
from torch import Tensor, nn

from regard.attention.core import Attention
from regard.attention.multihead import MultiHead
from regard.attention.observe import Edit, intervene, named_attentions, observe, zero
from regard.data.corpus import Record
from regard.errors import InputError
from regard.layers.embedding import Embedding
from regard.layers.evoformer import GatedAttention
from regard.metrics.alignment import agreement
from regard.run import Run
from regard.tasks.alignment import WeightSelection, alignment_error, gold_from_records
from regard.tasks.base import ProgressCallback
from regard.text.external import ExternalTokenizer
from regard.text.special import END

MAX_PATTERN_RECORDS = 64  # records that attention patterns are averaged over
HeadName = tuple[str, int]
"""The name of the attention, and the number of the head in it, from 0."""
MULTI_HEAD_MODULES = (MultiHead, GatedAttention)


class HeadPattern(NamedTuple):
    """Pattern of a head: fractions of its weight, mean distance and entropy of its rows."""

    previous: float
    same: float
    next: float
    first: float
    last: float
    separator: float  # tokens at the ends of sentences: [SEP] of BERT, </s> of other models
    distance: float  # tokens
    entropy: float  # bits


class HeadReport(NamedTuple):
    """The measurements of one head."""

    name: HeadName
    loss_increase: float  # by ablating the head
    pattern: HeadPattern
    aer: float | None = None  # of the links of this head, if the data have gold links
    metric_changes: Mapping[str, float] = MappingProxyType({})  # by ablating the head


def head_counts(run: Run) -> dict[str, int]:
    """Return the number of heads of each attention; 0 for an attention without heads."""
    holders = {
        id(m.attention): m.heads for m in run.model.modules() if isinstance(m, MULTI_HEAD_MODULES)
    }
    attentions = named_attentions(run.model)
    return {name: holders.get(id(attention), 0) for name, attention in attentions.items()}


def ablation_edits(run: Run, names: Sequence[HeadName]) -> dict[str, Edit]:
    """Return edits that ablate these heads."""
    counts = head_counts(run)
    heads_by_attention: dict[str, list[int]] = {}
    for name, head in names:
        heads_by_attention.setdefault(name, []).append(head)
    return {
        name: zero(heads if counts[name] else None) for name, heads in heads_by_attention.items()
    }


def ablated_loss(run: Run, records: Sequence[Record], names: Sequence[HeadName] = ()) -> float:
    """Return the loss of a run on records without these heads, in nats per token."""
    with torch.no_grad(), intervene(run.model.eval(), ablation_edits(run, names)):
        loss_sum = run.task.negative_log_likelihood(records)
    return float(loss_sum.total) / loss_sum.count


def ablated_metrics(
    run: Run, records: Sequence[Record], names: Sequence[HeadName] = ()
) -> dict[str, float]:
    """Return the standard metrics without these heads, with AER if the data have gold links."""
    with intervene(run.model, ablation_edits(run, names)):
        metrics = {k: v for k, v in run.task.score(records).items() if isinstance(v, float)}
        error_rate = alignment_error(run.task.aligner(), gold_from_records(records))
        metrics |= {} if error_rate is None else {"aer": error_rate}
    return metrics


def measure_heads(
    run: Run,
    records: Sequence[Record],
    on_progress: ProgressCallback | None = None,
    *,
    with_metrics: bool = False,
) -> list[HeadReport]:
    """Measure every head of the model, in its order."""
    patterns = attention_patterns(run, records[:MAX_PATTERN_RECORDS])
    full_loss = ablated_loss(run, records)
    error_rates = alignment_error_rates(run, records)
    full_metrics = ablated_metrics(run, records) if with_metrics else {}
    reports: list[HeadReport] = []
    for name, count in head_counts(run).items():
        for head in range(max(count, 1)):
            head_name = (name, head)
            loss_increase = ablated_loss(run, records, [head_name]) - full_loss
            metric_changes: dict[str, float] = {}
            if with_metrics:
                ablated = ablated_metrics(run, records, [head_name])
                metric_changes = {
                    metric: ablated[metric] - full_metrics[metric] for metric in full_metrics
                }
            reports.append(
                HeadReport(
                    head_name,
                    loss_increase,
                    patterns[name][head],
                    error_rates.get(head_name),
                    metric_changes,
                )
            )
            if on_progress is not None:
                on_progress(1)
    return reports


def alignment_error_rates(run: Run, records: Sequence[Record]) -> dict[HeadName, float]:
    """Return the AER of each head that attends to the source, if records have gold links."""
    gold, aligner = gold_from_records(records), run.task.aligner()
    if gold is None or aligner is None:
        return {}
    texts = [(record["source"], record["target"]) for record in gold.records]
    selections = {
        (name, head): WeightSelection(layer, head)
        for layer, name in enumerate(run.task.attention_names())
        for head in range(aligner.heads)
    }
    link_sets = aligner.links(texts, list(selections.values()))
    return {
        name: agreement(links, gold.gold).aer
        for name, links in zip(selections, link_sets, strict=True)
    }


def attention_patterns(run: Run, records: Sequence[Record]) -> dict[str, list[HeadPattern]]:
    """Return the pattern of each head, averaged over all rows of all records.

    Records are read one by one, because padding would change distances and last positions.
    """
    rows: dict[str, list[Tensor]] = {}
    counts, end_id = head_counts(run), end_token_id(run)
    for record in records:
        with (
            torch.no_grad(),
            observe(run.model.eval()) as observed,
            record_token_ids(run.model) as id_rows,
        ):
            run.task.negative_log_likelihood([record])
        for name, weights in observed.joined().items():
            if counts[name]:  # [... h q k]: an MSA has several rows
                table = weights.flatten(0, -4)
            else:
                table = weights if weights.ndim == 4 else weights.flatten(0, -3)[:, None]
            features = pattern_features(table, separator_mask(id_rows, end_id, table.shape[-1]))
            rows.setdefault(name, []).append(features.transpose(1, 2).flatten(0, 1))
    means = {
        name: torch.cat(feature_rows).nanmean(0).nan_to_num() for name, feature_rows in rows.items()
    }
    return {name: [HeadPattern(*row) for row in table.tolist()] for name, table in means.items()}


@contextmanager
def record_token_ids(model: nn.Module) -> Generator[list[Tensor]]:
    """Record the rows of ids that the model embeds as words."""
    id_rows: list[Tensor] = []

    def record_ids(_: nn.Module, ids: tuple[Tensor, ...], __: Tensor) -> None:
        id_rows.append(ids[0].flatten(0, -2) if ids[0].ndim > 1 else ids[0][None])

    embeddings = [m for name, m in model.named_modules() if name.split(".")[-1].endswith("words")]
    hooks = [m.register_forward_hook(record_ids) for m in embeddings if isinstance(m, Embedding)]
    try:
        yield id_rows
    finally:
        for hook in hooks:
            hook.remove()


def end_token_id(run: Run) -> int:
    """Return the id of the token at the end of a sentence."""
    for tokenizer in run.vocabularies.values():
        if isinstance(tokenizer, ExternalTokenizer) and tokenizer.special.end is not None:
            return tokenizer.special.end
    return END


def separator_mask(id_rows: Sequence[Tensor], end_id: int, key_count: int) -> Tensor:
    """Return a mask [k] of the separators in rows of ids with k tokens; nan if rows differ."""
    masks = {
        tuple((row == end_id).tolist()) for rows in id_rows for row in rows if len(row) == key_count
    }
    if len(masks) > 1:
        return torch.full((key_count,), torch.nan)
    return torch.tensor(masks.pop(), dtype=torch.float32) if masks else torch.zeros(key_count)


def pattern_features(weights: Tensor, is_separator: Tensor) -> Tensor:
    """[b h q k] -> [b h q 8], the fields of a HeadPattern."""
    queries, keys = weights.shape[-2:]
    query_positions, key_positions = torch.arange(queries)[:, None], torch.arange(keys)
    diagonals = [
        (weights * (key_positions == query_positions + offset)).sum(-1) for offset in (-1, 0, 1)
    ]
    separator_share = (weights * is_separator).sum(-1)
    distance = (weights * (key_positions - query_positions).abs()).sum(-1)
    entropy = -(weights * weights.clamp(min=1e-12).log2()).sum(-1)
    ends = [weights[..., 0], weights[..., -1]]
    return torch.stack([*diagonals, *ends, separator_share, distance, entropy], -1)


def names_by_importance(heads: Sequence[HeadReport]) -> list[HeadName]:
    """Return the names of heads in pruning order: the least important first."""
    return [head.name for head in sorted(heads, key=lambda head: head.loss_increase)]


@torch.no_grad()
def prune_heads(run: Run, names: Sequence[HeadName]) -> None:
    """Set the value projections of heads to zero, so that their outputs are zero.

    The shapes of the model stay, so that the run loads and exports as before.
    """
    modules = {m.attention: m for m in run.model.modules() if isinstance(m, MULTI_HEAD_MODULES)}
    attentions: dict[str, Attention] = named_attentions(run.model)
    for name, head in names:
        module = modules.get(attentions[name])
        if module is None:
            raise InputError(f"{name}: this attention has no heads; it cannot be pruned")
        if module.groups != module.heads:
            raise InputError(f"{name}: heads share their values; they cannot be pruned one by one")
        rows = slice(head * module.head_dim, (head + 1) * module.head_dim)
        module.to_value.weight[rows] = 0
        if module.has_bias:
            module.to_value.bias[rows] = 0
