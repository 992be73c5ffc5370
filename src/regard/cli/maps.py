"""What a run looked at, as a record: for `regard look --save`."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch.nn.functional import pad

from regard.attend.tap import observe
from regard.batch.pair import Pair, collate
from regard.cli.look_caption import map_of_caption
from regard.cli.look_fold import map_of_distances, map_of_fold
from regard.cli.look_learner import map_of_examples, map_of_life
from regard.cli.look_picture import map_of_picture
from regard.decode.trace import Traced
from regard.metric.links import gold_of
from regard.tasks.pretrain import Pretrain
from regard.train.answer import AnswerRun, record_of
from regard.train.bandit import BanditRun
from regard.train.bits import BitsRun
from regard.train.caption import CaptionRun
from regard.train.chat import ChatRun
from regard.train.classify import ClassifyRun, records_of
from regard.train.distance import DistanceRun
from regard.train.fewshot import FewshotRun
from regard.train.fold import FoldRun
from regard.train.image import ImageRun
from regard.train.language import LanguageRun
from regard.train.music import RollRun, beginning_of
from regard.train.pretrain import PretrainRun
from regard.train.run import Run
from regard.train.summarise import SummariseRun
from regard.train.tag import TagRun
from regard.train.translate import TranslateRun
from regard.train.trust import pulled
from regard.view.map import AttentionMap
from regard.view.more import NOTHING, Choice, More, Node
from regard.view.roll import pitch_name

FEW = 8  # choices of a step that are shown
WHOLE = "(the text)"  # what looks where a text is pooled


def map_of(run: Run, text: str, target: str | None = None, gold: str | None = None) -> AttentionMap:
    """Every layer and head of the attentions that belong together, for this text.

    `target`: a translation, summary or caption to look at, in the place of the model's own;
    `gold`: links of people between the words of a text and its translation.
    """
    if gold is not None and not isinstance(run, TranslateRun):
        raise ValueError(f"--gold is for translations, not for {run.settings.task}")
    match run:
        case TranslateRun():
            return translated(run, text, target, gold)
        case SummariseRun():
            return summarised(run, text, target)
        case ClassifyRun():
            return judged(run, text)
        case TagRun():
            return among(run.task.looked(text, run.longest), text.split(), text)
        case AnswerRun():
            return asked(run, text)
        case ImageRun():
            return map_of_picture(run, text)
        case CaptionRun():
            return map_of_caption(run, text, target)
        case FoldRun():
            return map_of_fold(run, text)
        case DistanceRun():
            return map_of_distances(run, text)
        case ChatRun() | LanguageRun():
            return written(run, text)
        case RollRun():
            return heard(run, text)
        case PretrainRun():
            return read(run, text)
        case BitsRun():
            return remembered(run, text)
        case BanditRun():
            return map_of_life(run, text)
        case FewshotRun():
            return map_of_examples(run, text)
        case _:
            raise ValueError(f"a run of {run.settings.task} has no page yet")


def graded(run: Run, text: str) -> AttentionMap:
    """Of `translate` and `classify`: gradient x attention, whose greatest row sums to 1."""
    plain, pull = map_of(run, text), pulled(run, text)
    found = {}
    for layer in plain.layers:
        own = pull[layer.name][0].numpy()
        own = (own if own.ndim == 3 else own[None])[..., : layer.weights.shape[-1]]
        found[layer.name] = own / max(float(own.sum(-1).max()), 1e-12)
    return AttentionMap(
        found, plain.queries.tokens, plain.keys.tokens, kind=plain.layers[0].kind, title=plain.title
    )


def translated(run: TranslateRun, text: str, target: str | None, gold: str | None) -> AttentionMap:
    """Of the model's own output also what else it might have said, and what the search tried."""
    run.check([text], "TEXT")
    source, tree = run.task.source.encode(text), tuple[Node, ...]()
    if target is None:
        traced = Traced(run.model)
        best = run.predict([text], stepper=traced)[0][0]
        target, ids = best.text, best.ids
        chosen, token = traced.path(ids), run.task.target.token
        tree = tuple(
            Node(one.parent, token(one.token), one.log_prob, number in chosen)
            for number, one in enumerate(traced.tried)
        )
    else:
        ids = run.task.target.ids([target])[0]
    seen = run.task.align(text, ids)
    layers = run.task.weights(collate([Pair(0, source.ids, ids)]))[:, 0]
    said = run.task.target.spell(ids).words
    links = None if gold is None else gold_of(gold, "--gold")
    return AttentionMap(
        dict(zip(run.task.cross, layers, strict=True)),
        seen.target,
        seen.source,
        pieces=(rising([*said, None]), rising([*source.words, None])),
        title=f"{text} -> {target}",
        more=More(links, choices(run, Pair(0, source.ids, ids)), tree),
    )


def rising(words: Sequence[int | None]) -> list[int]:
    """Word numbers from 0 on; what belongs to none is a word of its own."""
    found, before = list[int](), None
    for word in words:
        same = found and word is not None and word == before
        found.append(found[-1] + (not same) if found else 0)
        before = word
    return found


@torch.no_grad()
def choices(run: TranslateRun, pair: Pair) -> tuple[tuple[Choice, ...], ...]:
    """The likeliest tokens at each step, after those that were said before it."""
    model, batch = run.model.eval(), collate([pair])
    states = model.forced(model.remember(batch.source, batch.source_valid), batch.target_in)
    return likeliest(model.logits(states)[0], run.task.target.token)


def likeliest(logits: torch.Tensor, token: Callable[[int], str]) -> tuple[tuple[Choice, ...], ...]:
    shares, ids = logits.softmax(-1).topk(min(FEW, logits.shape[-1]))
    return tuple(
        tuple(Choice(token(n), share) for n, share in zip(some, rows, strict=True))
        for some, rows in zip(ids.tolist(), shares.tolist(), strict=True)
    )


def summarised(run: SummariseRun, text: str, target: str | None) -> AttentionMap:
    run.check([text], "TEXT")
    if target is None:
        best = run(text)
        target, ids = best.text, best.ids
    else:
        [document] = run.task.read([text])
        [ids] = run.task.summaries([target], [document.words])
    seen = run.task.align(text, ids)
    return AttentionMap({"attention": seen.weights}, seen.target, seen.source, title=target)


def judged(run: ClassifyRun, text: str) -> AttentionMap:
    """Among the tokens, or pooled; of a document by sentences, each on a row of its own."""
    record = records_of([text])[0]
    [row] = run.task.inputs.rows([record], run.longest)
    [verdict] = run.predict([record])
    title = f"{verdict.label}: {text}"
    if run.settings.model.kind != "han":
        seen = run.task.looked(record, run.longest)
        return among(seen, run.task.inputs.tokens(row), title)
    parts = run.task.parts(record, run.longest)
    words = np.zeros((len(parts), sum(len(part.tokens) for part in parts)), np.float32)
    start = 0
    for number, part in enumerate(parts):
        words[number, start : start + len(part.tokens)] = part.weights
        start += len(part.tokens)
    whole = np.array([[part.weight] for part in parts], np.float32)
    return AttentionMap(
        {"words": words, "words times sentence": words * whole},
        [f"sentence {number}: {part.weight:.0%}" for number, part in enumerate(parts, 1)],
        [token for part in parts for token in part.tokens],
        kind="pool",
        title=title,
    )


def asked(run: AnswerRun, text: str) -> AttentionMap:
    """What the context around the answer looked at in the question."""
    record = record_of(text, "TEXT")
    [reply] = run.reply([text], "TEXT")
    seen = run.task.asks(record, run.longest)
    if seen is None:
        raise ValueError(f"model {run.settings.model.kind} has no attention to look at")
    table = np.asarray(seen.weights, np.float32).T
    title = f"{record['question']} {reply.text}"
    return AttentionMap({"context to question": table}, seen.context, seen.question, title=title)


def heard(run: RollRun, text: str) -> AttentionMap:
    """What each step of a piece looked at."""
    steps = beginning_of(text, "TEXT")
    names = ["(begin)", *(" ".join(map(pitch_name, step)) or "(rest)" for step in steps)]
    return AttentionMap({"attention": run.task.looked(steps)}, names, title=text)


def read(run: PretrainRun, text: str) -> AttentionMap:
    """What each token of a text looked at, with [MASK] where the model is to guess."""
    if not isinstance(run.task, Pretrain):
        raise ValueError(f"model {run.settings.model.kind} has no attention to look at")
    ids = run.task.masked(text)
    row = torch.tensor([ids])
    with torch.no_grad(), observe(run.task.model.eval()) as seen:
        run.task.model.encode(row, torch.ones_like(row, dtype=torch.bool))
    return among(seen.whole(), [run.task.named(number) for number in ids], text)


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
        states = task.model.forced(None, torch.tensor([ids]))
        said = likeliest(task.model.logits(states)[0], task.text.token)
    # a model that looks at what was before, and not at itself, has one slot less
    square = {name: pad(one, (0, len(ids) - one.shape[-1])) for name, one in seen.whole().items()}
    if not square:
        raise ValueError(f"model {run.settings.model.kind} has no attention to look at")
    return among(square, [task.text.token(n) for n in ids], text, More(choices=said))


def among(
    seen: Mapping[str, torch.Tensor], tokens: Sequence[str], title: str, more: More = NOTHING
) -> AttentionMap:
    """Of the attentions of one reading, those among the tokens; else how the text was pooled."""
    count = len(tokens)
    layers = {name: one[0] for name, one in seen.items() if one.shape[-2:] == (count, count)}
    if layers:
        return AttentionMap(layers, tokens, title=title, more=more)
    pooled = {name: one[0][..., :count] for name, one in seen.items() if one.shape[-1] >= count}
    if not pooled:
        raise ValueError("this run has no attention over the tokens of a text to show")
    hops = next(iter(pooled.values())).shape[-2]
    looks = [WHOLE] if hops == 1 else [f"{WHOLE} {hop}" for hop in range(1, hops + 1)]
    return AttentionMap(pooled, looks, tokens, kind="pool", title=title)
