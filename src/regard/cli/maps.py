"""What a run looked at, as a record: `regard look --html` and `--npz`."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from regard.attend.tap import observe
from regard.batch.pair import Pair, collate
from regard.train.bits import BitsRun
from regard.train.chat import ChatRun
from regard.train.classify import ClassifyRun, records_of
from regard.train.language import LanguageRun
from regard.train.run import Run
from regard.train.tag import TagRun
from regard.train.translate import TranslateRun
from regard.view.map import AttentionMap

WHOLE = "(the text)"  # what looks where a text is pooled


def map_of(run: Run, text: str) -> AttentionMap:
    """Every layer and head of the attentions that belong together, for this text."""
    match run:
        case TranslateRun():
            return translated(run, text)
        case ClassifyRun():
            record = records_of([text])[0]
            [row] = run.task.inputs.rows([record], run.longest)
            return among(run.task.looked(record, run.longest), run.task.inputs.tokens(row), text)
        case TagRun():
            return among(run.task.looked(text, run.longest), text.split(), text)
        case ChatRun() | LanguageRun():
            return written(run, text)
        case BitsRun():
            return remembered(run, text)
        case _:
            raise ValueError(f"a run of {run.settings.task} has no page yet")


def translated(run: TranslateRun, text: str) -> AttentionMap:
    run.check([text], "TEXT")
    best = run(text)
    ids = run.task.source.ids([text])[0]
    seen = run.task.align(text, best.ids)
    layers = run.task.weights(collate([Pair(0, ids, best.ids)]))[:, 0]
    named = dict(zip(run.task.cross, layers, strict=True))
    return AttentionMap(named, seen.target, seen.source, title=f"{text} -> {best.text}")


def remembered(run: BitsRun, text: str) -> AttentionMap:
    """Steps by slots of the memory, for each head that reads or writes."""
    seen = run.task.looked(text)
    slots = range(next(iter(seen.weights.values())).shape[-1])
    return AttentionMap(seen.weights, seen.steps, [*map(str, slots)], kind="memory", title=text)


def written(run: Any, text: str) -> AttentionMap:
    """What each token looked at, of those before it."""
    task = run.task
    ids = [task.end, *task.text.ids([text])[0]][task.room(0)]
    with torch.no_grad(), observe(task.model.eval()) as seen:
        task.model.forced(None, torch.tensor([ids]))
    return among(seen.whole(), [task.text.token(n) for n in ids], text)


def among(seen: Mapping[str, torch.Tensor], tokens: Sequence[str], title: str) -> AttentionMap:
    """Of the attentions of one reading, those among the tokens; else how the text was pooled."""
    count = len(tokens)
    layers = {name: one[0] for name, one in seen.items() if one.shape[-2:] == (count, count)}
    if layers:
        return AttentionMap(layers, tokens, title=title)
    pooled = {name: one[0][..., :count] for name, one in seen.items() if one.shape[-1] >= count}
    if not pooled:
        raise ValueError("this run has no attention over the tokens of a text to show")
    hops = next(iter(pooled.values())).shape[-2]
    looks = [WHOLE] if hops == 1 else [f"{WHOLE} {hop}" for hop in range(1, hops + 1)]
    return AttentionMap(pooled, looks, tokens, kind="pool", title=title)
