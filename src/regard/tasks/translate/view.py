"""Attention maps and terminal text of translations."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from regard.attention.observe import Edit
from regard.batching.example import Example, collate
from regard.data.corpus import Record
from regard.errors import InputError
from regard.tasks.base import Readout
from regard.tasks.map_tools import token_choices, word_indices
from regard.view.annotations import MapAnnotations, SearchTreeNode
from regard.view.attention_map import AttentionMap
from regard.view.terminal import Surface, render_heatmap, render_legend

if TYPE_CHECKING:
    from regard.tasks.translate.task import TranslateTask

ARROW = "->"


def translation_map(task: "TranslateTask", record: Record, target: str | None) -> AttentionMap:
    """Return the map of every layer and head.

    For the model's own output it also holds alternative tokens and the search tree.
    """
    text: str = record["source"]
    source, tree = task.source.encode(text), tuple[SearchTreeNode, ...]()
    if target is None:
        best, stepper = task.trace(record)
        target, ids = best.text, best.ids
        chosen, token = stepper.path(ids), task.target.token
        tree = tuple(
            SearchTreeNode(node.parent, token(node.token), node.log_prob, number in chosen)
            for number, node in enumerate(stepper.nodes)
        )
    else:
        ids = task.target.encode_ids([target])[0]
    alignment = task.alignment(text, ids)
    batch = task.to_device(collate([Example(0, source.ids, ids)]))
    layers = task.attention_weights(batch)[:, 0]
    target_words = task.target.encoding_from_ids(ids).words
    with torch.no_grad():
        memory = task.model.eval().remember(batch.source, batch.source_valid)
        logits = task.model.logits(task.model.teacher_forced(memory, batch.target_in))
    return AttentionMap(
        dict(zip(task.cross_attentions, layers, strict=True)),
        alignment.target,
        alignment.source,
        word_ids=(word_indices([*target_words, None]), word_indices([*source.words, None])),
        title=f"{text} -> {target}",
        annotations=MapAnnotations(None, token_choices(logits[0], task.target.token), tree),
    )


def render_translation(
    task: "TranslateTask", record: Record, surface: Surface, target: str | None = None
) -> str:
    """Return the output and a heat map: rows are target tokens, columns source tokens."""
    _ = task.cross_attentions  # raises an error if there are none
    text: str = record["source"]
    if target is None:
        best = task.predict([record])[0].best
        target, ids = best.text, best.ids
    else:
        ids = task.target.encode_ids([target])[0]
    alignment = task.alignment(text, ids)
    heatmap = render_heatmap(
        alignment.weights.tolist(), alignment.target, alignment.source, surface
    )
    return f"{text} -> {target}\n\n{heatmap}\n\nweight: {render_legend(surface)}"


def translation_readout(task: "TranslateTask", text: str) -> Readout:
    """Return the translation and its log-probability given any source ids."""
    output, model = task.decode([text])[0].best, task.model
    ids = task.source.encode_ids([text])[0]

    def log_prob(source_ids: Sequence[int]) -> Tensor:
        batch = task.to_device(collate([Example(0, list(source_ids), output.ids)]))
        memory = model.remember(batch.source, batch.source_valid)
        log_probs = model.logits(model.teacher_forced(memory, batch.target_in)).log_softmax(-1)
        return log_probs.gather(-1, batch.target_out[..., None]).sum()

    tokens = [task.source.token(n) for n in ids]
    return Readout(ids, tokens, range(len(ids)), output.text, log_prob, task.cross_attentions)


def forced_attention(
    task: "TranslateTask", record: Record, links: Sequence[str]
) -> dict[str, Edit]:
    """Return edits for TARGET->SOURCE: the step that writes TARGET attends to SOURCE only."""
    text: str = record["source"]
    source = task.source.encode(text)
    target = task.target.encoding_from_ids(task.predict([record])[0].best.ids)
    positions_by_step: dict[int, list[int]] = {}
    for link in links:
        target_word, arrow, source_word = link.partition(ARROW)
        if not arrow:
            raise InputError(f"--force-attention {link}: write it as WRITTEN{ARROW}READ")
        positions = word_positions(source_word, task.source.words(text), source.words, "the text")
        target_words = task.target.words(task.target.decode(target.ids))
        for step in word_positions(target_word, target_words, target.words, "the output"):
            positions_by_step[step] = positions
    return {name: pin_attention(positions_by_step) for name in task.cross_attentions}


def word_positions(
    word: str, words: Sequence[str], word_ids: Sequence[int | None], where: str
) -> list[int]:
    """Return the positions of the tokens of a word, at its first occurrence."""
    if word not in words:
        raise InputError(
            f"--force-attention: there is no word {word!r} in {where}: {' '.join(words)}"
        )
    index = words.index(word)
    return [position for position, word_id in enumerate(word_ids) if word_id == index]


def pin_attention(positions_by_step: dict[int, list[int]]) -> Edit:
    """Return an edit that puts all weight on given positions, at given steps of a search."""
    step = -1

    def edit(weights: Tensor) -> Tensor:
        nonlocal step
        step += 1
        positions = positions_by_step.get(step)
        if positions is None:
            return weights
        index = torch.tensor(positions, device=weights.device)
        return torch.zeros_like(weights).index_fill_(-1, index, 1 / len(positions))

    return edit
