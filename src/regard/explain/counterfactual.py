"""`regard look --ablate`, `--force-attention`: what would be said if attention were elsewhere."""

import re
from collections.abc import Sequence
from contextlib import ExitStack
from difflib import SequenceMatcher

import torch

from regard.attention.observe import find_attention, intervene, named_attentions
from regard.explain.heads import ablation_edits, head_counts
from regard.run import Run

SHORT = re.compile(r"L(\d+)(?:\.H(\d+))?")


def render_counterfactual(run: Run, text: str, heads: Sequence[str], links: Sequence[str]) -> str:
    """The answer as it is, and as it then would be, with what differs in brackets."""
    record = run.records([text], "TEXT")[0]
    before = run.predict([record])[0].text
    forced = run.task.forced_attention(record, links) if links else {}
    with ExitStack() as edits, torch.no_grad():
        edits.enter_context(intervene(run.model, ablation_edits(run, parse_heads(run, heads))))
        edits.enter_context(intervene(run.model, forced))
        after = run.predict([record])[0].text
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
    names = run.task.attention_names()
    layer, head = int(short[1]), short[2]
    if not 1 <= layer <= len(names):
        raise ValueError(f"--ablate {word}: there are layers from L1 to L{len(names)}")
    return names[layer - 1] if head is None else f"{names[layer - 1]}:{head}"


def mark_differences(one: str, other: str) -> tuple[str, str]:
    """Words that differ, in brackets."""
    a, b = one.split(), other.split()
    left, right = list[str](), list[str]()
    for kind, a1, a2, b1, b2 in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        for into, some in ((left, a[a1:a2]), (right, b[b1:b2])):
            if some:
                into.append(" ".join(some) if kind == "equal" else f"[{' '.join(some)}]")
    return " ".join(left), " ".join(right)
