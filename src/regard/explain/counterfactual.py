"""`regard look --ablate` and `--force-attention`: predictions with edited attention."""

import re
from collections.abc import Sequence
from contextlib import ExitStack
from difflib import SequenceMatcher

import torch

from regard.attention.observe import find_attention, intervene, named_attentions
from regard.data.corpus import Record
from regard.errors import InputError
from regard.explain.heads import ablation_edits, head_counts
from regard.run import Run
from regard.tasks.base import Prediction

SHORT_NAME = re.compile(r"L(\d+)(?:\.H(\d+))?")


def render_counterfactual(run: Run, text: str, heads: Sequence[str], links: Sequence[str]) -> str:
    """Return the prediction and the edited one, with differences in brackets."""
    record = run.records([text], "TEXT")[0]
    predictions = predict_edited(run, record, heads, links)
    original, edited = mark_differences(*(prediction.text for prediction in predictions))
    return f"original:  {original}\nedited:    {edited}"


def predict_edited(
    run: Run, record: Record, heads: Sequence[str], links: Sequence[str]
) -> tuple[Prediction, Prediction]:
    """Return the prediction for a record, and the one without `heads` and with forced `links`."""
    original = run.predict([record])[0]
    forced = run.task.forced_attention(record, links) if links else {}
    with ExitStack() as edits, torch.no_grad():
        edits.enter_context(intervene(run.model, ablation_edits(run, parse_heads(run, heads))))
        edits.enter_context(intervene(run.model, forced))
        return original, run.predict([record])[0]


def parse_heads(run: Run, words: Sequence[str]) -> list[tuple[str, int]]:
    """Parse names such as NAME, NAME:HEAD or L3.H5, which count from 1, as `regard heads` does."""
    counts, heads = head_counts(run), list[tuple[str, int]]()
    for word in words:
        name, _, number = full_head_name(run, word).partition(":")
        find_attention(named_attentions(run.model), name, "--ablate")
        head_count = counts[name]
        if not number:
            heads += [(name, head) for head in range(max(head_count, 1))]
        elif not head_count:
            raise InputError(f"--ablate {word}: {name} has no heads; leave out the number")
        elif not number.isdecimal() or not 1 <= int(number) <= head_count:
            raise InputError(f"--ablate {word}: {name} has heads from 1 to {head_count}")
        else:
            heads.append((name, int(number) - 1))
    return heads


def full_head_name(run: Run, word: str) -> str:
    """Convert L3.H5, head 5 of the third layer that `regard look` shows, to NAME:5.

    Other words are returned unchanged.
    """
    match = SHORT_NAME.fullmatch(word)
    if match is None:
        return word
    names = run.task.attention_names()
    layer, head = int(match[1]), match[2]
    if not 1 <= layer <= len(names):
        raise InputError(f"--ablate {word}: there are layers from L1 to L{len(names)}")
    return names[layer - 1] if head is None else f"{names[layer - 1]}:{head}"


def mark_differences(first: str, second: str) -> tuple[str, str]:
    """Put words that differ in brackets."""
    a, b = first.split(), second.split()
    marked_a, marked_b = list[str](), list[str]()
    for kind, a1, a2, b1, b2 in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        for marked, words in ((marked_a, a[a1:a2]), (marked_b, b[b1:b2])):
            if words:
                marked.append(" ".join(words) if kind == "equal" else f"[{' '.join(words)}]")
    return " ".join(marked_a), " ".join(marked_b)
