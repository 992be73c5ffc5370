"""What a run looked at, as a record: for `regard look --save`."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch.nn.functional import pad

from regard.attention.observe import observe
from regard.batching.example import Example, collate
from regard.cli.look_caption import caption_map
from regard.cli.look_fold import distance_map, fold_map
from regard.cli.look_learner import bandit_map, fewshot_map
from regard.cli.look_picture import image_map
from regard.decoding.tracing import TracingStepper
from regard.explain.faithfulness import gradient_attention
from regard.metrics.alignment_files import parse_gold
from regard.tasks.pretrain import PretrainTask
from regard.train.answer import AnswerRun, parse_record
from regard.train.bandit import BanditRun
from regard.train.bits import BitsRun
from regard.train.caption import CaptionRun
from regard.train.chat import ChatRun
from regard.train.classify import ClassifyRun, parse_records
from regard.train.distance import DistanceRun
from regard.train.fewshot import FewshotRun
from regard.train.fold import FoldRun
from regard.train.image import ImageRun
from regard.train.language import LanguageRun
from regard.train.music import PianoRollRun, parse_beginning
from regard.train.pretrain import PretrainRun
from regard.train.run import Run
from regard.train.summarize import SummarizeRun
from regard.train.tag import TagRun
from regard.train.translate import TranslateRun
from regard.view.annotations import NO_ANNOTATIONS, MapAnnotations, SearchTreeNode, TokenChoice
from regard.view.attention_map import AttentionMap
from regard.view.piano_roll import pitch_name

FEW = 8  # choices of a step that are shown
WHOLE = "(the text)"  # what looks where a text is pooled


def attention_map(
    run: Run, text: str, target: str | None = None, gold: str | None = None
) -> AttentionMap:
    """Every layer and head of the attentions that belong together, for this text.

    `target`: a translation, summary or caption to look at, in the place of the model's own;
    `gold`: links of people between the words of a text and its translation.
    """
    if gold is not None and not isinstance(run, TranslateRun):
        raise ValueError(f"--gold is for translations, not for {run.settings.task}")
    match run:
        case TranslateRun():
            return translation_map(run, text, target, gold)
        case SummarizeRun():
            return summary_map(run, text, target)
        case ClassifyRun():
            return classification_map(run, text)
        case TagRun():
            return token_map(run.task.attention_weights(text, run.max_tokens), text.split(), text)
        case AnswerRun():
            return answer_map(run, text)
        case ImageRun():
            return image_map(run, text)
        case CaptionRun():
            return caption_map(run, text, target)
        case FoldRun():
            return fold_map(run, text)
        case DistanceRun():
            return distance_map(run, text)
        case ChatRun() | LanguageRun():
            return language_map(run, text)
        case PianoRollRun():
            return music_map(run, text)
        case PretrainRun():
            return pretraining_map(run, text)
        case BitsRun():
            return memory_map(run, text)
        case BanditRun():
            return bandit_map(run, text)
        case FewshotRun():
            return fewshot_map(run, text)
        case _:
            raise ValueError(f"a run of {run.settings.task} has no page yet")


def gradient_attention_map(run: Run, text: str) -> AttentionMap:
    """Of `translate` and `classify`: gradient x attention, whose greatest row sums to 1."""
    plain, pull = attention_map(run, text), gradient_attention(run, text)
    found = {}
    for layer in plain.layers:
        own = pull[layer.name][0].numpy()
        own = (own if own.ndim == 3 else own[None])[..., : layer.weights.shape[-1]]
        found[layer.name] = own / max(float(own.sum(-1).max()), 1e-12)
    return AttentionMap(
        found, plain.queries.tokens, plain.keys.tokens, kind=plain.layers[0].kind, title=plain.title
    )


def translation_map(
    run: TranslateRun, text: str, target: str | None, gold: str | None
) -> AttentionMap:
    """Of the model's own output also what else it might have said, and what the search tried."""
    run.check_inputs([text], "TEXT")
    source, tree = run.task.source.encode(text), tuple[SearchTreeNode, ...]()
    if target is None:
        traced = TracingStepper(run.model)
        best = run.predict([text], stepper=traced)[0][0]
        target, ids = best.text, best.ids
        chosen, token = traced.path(ids), run.task.target.token
        tree = tuple(
            SearchTreeNode(one.parent, token(one.token), one.log_prob, number in chosen)
            for number, one in enumerate(traced.nodes)
        )
    else:
        ids = run.task.target.encode_ids([target])[0]
    seen = run.task.alignment(text, ids)
    layers = run.task.attention_weights(collate([Example(0, source.ids, ids)]))[:, 0]
    said = run.task.target.encoding_from_ids(ids).words
    links = None if gold is None else parse_gold(gold, "--gold")
    return AttentionMap(
        dict(zip(run.task.cross_attentions, layers, strict=True)),
        seen.target,
        seen.source,
        word_ids=(word_indices([*said, None]), word_indices([*source.words, None])),
        title=f"{text} -> {target}",
        annotations=MapAnnotations(links, token_choices(run, Example(0, source.ids, ids)), tree),
    )


def word_indices(words: Sequence[int | None]) -> list[int]:
    """Word numbers from 0 on; what belongs to none is a word of its own."""
    found, before = list[int](), None
    for word in words:
        same = found and word is not None and word == before
        found.append(found[-1] + (not same) if found else 0)
        before = word
    return found


@torch.no_grad()
def token_choices(run: TranslateRun, pair: Example) -> tuple[tuple[TokenChoice, ...], ...]:
    """The likeliest tokens at each step, after those that were said before it."""
    model, batch = run.model.eval(), collate([pair])
    states = model.teacher_forced(model.remember(batch.source, batch.source_valid), batch.target_in)
    return likeliest_tokens(model.logits(states)[0], run.task.target.token)


def likeliest_tokens(
    logits: torch.Tensor, token: Callable[[int], str]
) -> tuple[tuple[TokenChoice, ...], ...]:
    shares, ids = logits.softmax(-1).topk(min(FEW, logits.shape[-1]))
    return tuple(
        tuple(TokenChoice(token(n), share) for n, share in zip(some, rows, strict=True))
        for some, rows in zip(ids.tolist(), shares.tolist(), strict=True)
    )


def summary_map(run: SummarizeRun, text: str, target: str | None) -> AttentionMap:
    run.check_inputs([text], "TEXT")
    if target is None:
        best = run(text)
        target, ids = best.text, best.ids
    else:
        [document] = run.task.encode_documents([text])
        [ids] = run.task.encode_summaries([target], [document.words])
    seen = run.task.alignment(text, ids)
    return AttentionMap({"attention": seen.weights}, seen.target, seen.source, title=target)


def classification_map(run: ClassifyRun, text: str) -> AttentionMap:
    """Among the tokens, or pooled; of a document by sentences, each on a row of its own."""
    record = parse_records([text])[0]
    [row] = run.task.inputs.rows([record], run.max_tokens)
    [verdict] = run.predict([record])
    title = f"{verdict.label}: {text}"
    if run.settings.model.kind != "han":
        seen = run.task.attention_weights(record, run.max_tokens)
        return token_map(seen, run.task.inputs.tokens(row), title)
    parts = run.task.weighted_sentences(record, run.max_tokens)
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


def answer_map(run: AnswerRun, text: str) -> AttentionMap:
    """What the context around the answer looked at in the question."""
    record = parse_record(text, "TEXT")
    [reply] = run.predict_lines([text], "TEXT")
    seen = run.task.question_attention(record, run.max_tokens)
    if seen is None:
        raise ValueError(f"model {run.settings.model.kind} has no attention to look at")
    table = np.asarray(seen.weights, np.float32).T
    title = f"{record['question']} {reply.text}"
    return AttentionMap({"context to question": table}, seen.context, seen.question, title=title)


def music_map(run: PianoRollRun, text: str) -> AttentionMap:
    """What each step of a piece looked at."""
    steps = parse_beginning(text, "TEXT")
    names = ["(begin)", *(" ".join(map(pitch_name, step)) or "(rest)" for step in steps)]
    return AttentionMap({"attention": run.task.attention_weights(steps)}, names, title=text)


def pretraining_map(run: PretrainRun, text: str) -> AttentionMap:
    """What each token of a text looked at, with [MASK] where the model is to guess."""
    if not isinstance(run.task, PretrainTask):
        raise ValueError(f"model {run.settings.model.kind} has no attention to look at")
    ids = run.task.masked_ids(text)
    row = torch.tensor([ids])
    with torch.no_grad(), observe(run.task.model.eval()) as seen:
        run.task.model.encode(row, torch.ones_like(row, dtype=torch.bool))
    return token_map(seen.joined(), [run.task.token_name(number) for number in ids], text)


def memory_map(run: BitsRun, text: str) -> AttentionMap:
    """Steps by slots of the memory, for each head that reads or writes."""
    seen = run.task.step_attention(text)
    slots = range(next(iter(seen.weights.values())).shape[-1])
    return AttentionMap(seen.weights, seen.steps, [*map(str, slots)], kind="memory", title=text)


def language_map(run: Any, text: str) -> AttentionMap:
    """What each token looked at, of those before it."""
    task = run.task
    ids = [task.end, *task.text.encode_ids([text])[0]][task.prompt_slice(0)]
    with torch.no_grad(), observe(task.model.eval()) as seen:
        states = task.model.teacher_forced(None, torch.tensor([ids]))
        said = likeliest_tokens(task.model.logits(states)[0], task.text.token)
    # a model that looks at what was before, and not at itself, has one slot less
    square = {name: pad(one, (0, len(ids) - one.shape[-1])) for name, one in seen.joined().items()}
    if not square:
        raise ValueError(f"model {run.settings.model.kind} has no attention to look at")
    return token_map(square, [task.text.token(n) for n in ids], text, MapAnnotations(choices=said))


def token_map(
    seen: Mapping[str, torch.Tensor],
    tokens: Sequence[str],
    title: str,
    more: MapAnnotations = NO_ANNOTATIONS,
) -> AttentionMap:
    """Of the attentions of one reading, those among the tokens; else how the text was pooled."""
    count = len(tokens)
    layers = {name: one[0] for name, one in seen.items() if one.shape[-2:] == (count, count)}
    if layers:
        return AttentionMap(layers, tokens, title=title, annotations=more)
    pooled = {name: one[0][..., :count] for name, one in seen.items() if one.shape[-1] >= count}
    if not pooled:
        raise ValueError("this run has no attention over the tokens of a text to show")
    hops = next(iter(pooled.values())).shape[-2]
    looks = [WHOLE] if hops == 1 else [f"{WHOLE} {hop}" for hop in range(1, hops + 1)]
    return AttentionMap(pooled, looks, tokens, kind="pool", title=title)
