"""`regard look --ablate`, `--force-attention`: what would be said if attention were elsewhere."""

import re
from collections.abc import Sequence
from contextlib import ExitStack
from difflib import SequenceMatcher

import torch
from torch import Tensor

from regard.attention.observe import Edit, find_attention, intervene, named_attentions
from regard.explain.heads import ablation_edits, head_counts
from regard.train.run import Run
from regard.train.translate import TranslateRun

GIVES = "->"
SHORT = re.compile(r"L(\d+)(?:\.H(\d+))?")


def render_counterfactual(run: Run, text: str, gone: Sequence[str], forced: Sequence[str]) -> str:
    """The answer as it is, and as it then would be, with what differs in brackets."""
    before = run.predict_lines([text], "TEXT")[0].text
    with ExitStack() as edits, torch.no_grad():
        edits.enter_context(intervene(run.model, ablation_edits(run, parse_heads(run, gone))))
        edits.enter_context(intervene(run.model, forced_attention_edits(run, text, forced)))
        after = run.predict_lines([text], "TEXT")[0].text
    one, other = mark_differences(before, after)
    return f"as it is:  {one}\nwhat if:   {other}"


def parse_heads(run: Run, words: Sequence[str]) -> list[tuple[str, int]]:
    """NAME, an attention as `regard heads` calls it, or NAME:HEAD, from 1; or L3.H5."""
    counts, found = head_counts(run), list[tuple[str, int]]()
    for word in words:
        name, _, number = full_head_name(run, word).partition(":")
        find_attention(named_attentions(run.model), name, "--ablate")
        several = counts[name]
        if not number:
            found += [(name, head) for head in range(max(several, 1))]
        elif not number.isdecimal() or not 1 <= int(number) <= several:
            raise ValueError(f"--ablate {word}: {name} has heads from 1 to {several}")
        else:
            found.append((name, int(number) - 1))
    return found


def full_head_name(run: Run, word: str) -> str:
    """L3.H5 is the fifth head of the third layer that `regard look` shows; else the word itself."""
    short = SHORT.fullmatch(word)
    if short is None:
        return word
    names = (
        run.task.cross_attentions
        if isinstance(run, TranslateRun)
        else [*named_attentions(run.model)]
    )
    layer, head = int(short[1]), short[2]
    if not 1 <= layer <= len(names):
        raise ValueError(f"--ablate {word}: there are layers from L1 to L{len(names)}")
    return names[layer - 1] if head is None else f"{names[layer - 1]}:{head}"


def forced_attention_edits(run: Run, text: str, words: Sequence[str]) -> dict[str, Edit]:
    """WRITTEN->READ: where a word of the output is written, only this one of the text is read."""
    if not words:
        return {}
    if not isinstance(run, TranslateRun):
        raise ValueError("--force-attention is for translation")
    read = run.task.source.encode(text)
    written = run.task.target.encoding_from_ids(run(text).ids)
    steps: dict[int, list[int]] = {}
    for word in words:
        target, arrow, source = word.partition(GIVES)
        if not arrow:
            raise ValueError(f"--force-attention {word}: write it as WRITTEN{GIVES}READ")
        reads = word_token_positions(source, run.task.source.words(text), read.words, "the text")
        said = run.task.target.words(run.task.target.decode(written.ids))
        for step in word_token_positions(target, said, written.words, "the output"):
            steps[step] = reads
    return {name: pin_attention(steps) for name in run.task.cross_attentions}


def word_token_positions(
    word: str, words: Sequence[str], numbers: Sequence[int | None], where: str
) -> list[int]:
    """Places of the tokens of a word: of its first occurrence."""
    if word not in words:
        raise ValueError(
            f"--force-attention: there is no word {word!r} in {where}: {' '.join(words)}"
        )
    number = words.index(word)
    return [place for place, one in enumerate(numbers) if one == number]


def pin_attention(steps: dict[int, list[int]]) -> Edit:
    """At these steps of a search, which calls once a step, all weight on these places."""
    calls = 0

    def edit(weights: Tensor) -> Tensor:
        nonlocal calls
        here = steps.get(calls)
        calls += 1
        if here is None:
            return weights
        other = torch.zeros_like(weights)
        other[..., here] = 1 / len(here)
        return other

    return edit


def mark_differences(one: str, other: str) -> tuple[str, str]:
    """Words that differ, in brackets."""
    a, b = one.split(), other.split()
    left, right = list[str](), list[str]()
    for kind, a1, a2, b1, b2 in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        for into, some in ((left, a[a1:a2]), (right, b[b1:b2])):
            if some:
                into.append(" ".join(some) if kind == "equal" else f"[{' '.join(some)}]")
    return " ".join(left), " ".join(right)
