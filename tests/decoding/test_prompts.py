"""Continuations longer than the context: the same as from scratch, whoever searches."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from regard.decoding.constraints import Constraints
from regard.decoding.prompts import (
    PromptState,
    PromptStepper,
    ShiftedPromptStepper,
    prompt_state,
)
from regard.models.catalogue import build_model
from regard.tasks.generation import Decoding, SearchFunction, build_search
from regard.tasks.language.task import LanguageTask
from regard.tasks.load import resolve_settings
from regard.text.external import ExternalTokenizer
from regard.text.train import train_tokenizer

TEXT = "the cat sat on the mat. the dog sat on the log. "
PROMPTS = ["", "t", "the c", "the dog sat on", "on the mat", "the c"]


def made(context: int) -> LanguageTask:
    """With weights so wide that what is seen matters, in float64: no two sums are nearly equal."""
    text = train_tokenizer("characters", [TEXT], 100)
    sizes = {"dim": 12, "heads": 2, "layers": 2, "max_positions": context, "dropout": 0.0}
    model = build_model("gpt2", {**sizes, "size": text.size}).double().eval()
    for weight in model.parameters():
        nn.init.normal_(weight, std=0.4)
    return LanguageTask(model, text, decoding=Decoding(search("greedy"), Constraints()))


def search(kind: str) -> SearchFunction:
    decode: dict[str, Any] = {"kind": kind} | ({"n_best": 3} if kind == "beam" else {})
    return build_search(resolve_settings({"task": "language", "decode": decode}).decode)


class Scratch:
    """Reads all that is visible anew for each token. A state is a list of lists of ids."""

    def __init__(self, task: LanguageTask):
        self.model, self.context = task.model, task.model.max_positions

    def start(self, memory: PromptState) -> list[list[int]]:
        assert memory.last is not None
        self.begun = False
        return torch.cat([memory.ids, memory.last[:, None]], 1).tolist()

    def step(self, state: list[list[int]], tokens: Tensor) -> tuple[Tensor, list[list[int]]]:
        if self.begun:
            half = self.context // 2
            full = [ids if len(ids) < self.context else ids[len(ids) - half :] for ids in state]
            state = [[*ids, token] for ids, token in zip(full, tokens.tolist(), strict=True)]
        self.begun = True
        last = self.model.teacher_forced(None, torch.tensor(state))[:, -1]
        return self.model.logits(last).log_softmax(-1), state

    def select(self, state: list[list[int]], rows: Tensor) -> list[list[int]]:
        return [state[row] for row in rows.tolist()]


@torch.no_grad()
@pytest.mark.parametrize(
    ("kind", "context"),
    [("greedy", 1), ("greedy", 8), ("sample", 2), ("sample", 7), ("beam", 5), ("beam", 12)],
)
def test_any_length_is_written_as_from_scratch(kind, context, unchecked):
    task, found = made(context), search(kind)
    rules = Constraints(30, min_length=26)

    def from_scratch(seeds: list[int]) -> Any:
        def search_batch(_: Any, memory: PromptState, *, constraints: Constraints) -> Any:
            return found(seeds)(Scratch(task), memory, constraints=constraints)

        return search_batch

    ours = task.complete(PROMPTS, decoding=Decoding(found, rules))
    theirs = task.complete(PROMPTS, decoding=Decoding(from_scratch, rules))
    for one, other in zip(ours, theirs, strict=True):
        assert len(one) == (3 if kind == "beam" else 1)
        assert [output.ids for output in one] == [output.ids for output in other]
        assert [o.log_prob for o in one] == pytest.approx([o.log_prob for o in other], rel=1e-9)
        assert all(26 <= len(output.ids) <= 30 for output in one)
    how = Decoding(found, rules)
    alone = [task.complete([prompt], decoding=how)[0] for prompt in PROMPTS[:-1]]
    assert [[o.ids for o in one] for one in alone] == [[o.ids for o in one] for one in ours[:-1]]


@torch.no_grad()
def test_with_ids_that_are_not_ours_too(unchecked):
    own = made(7)
    external = ExternalTokenizer.from_tokenizer(own.text)
    other = LanguageTask(own.model, external, decoding=own.decoding)
    assert isinstance(other.build_stepper(), ShiftedPromptStepper)
    rules = [Constraints(30, min_length=30, forbidden=ids) for ids in ((0, 1), (0, 1, 3, 4))]
    for kind in ("greedy", "beam"):
        one = own.complete(PROMPTS, decoding=Decoding(search(kind), rules[0]))
        two = other.complete(PROMPTS, decoding=Decoding(search(kind), rules[1]))
        assert [best[0].ids for best in one] == [best[0].ids for best in two]


@torch.no_grad()
def test_what_is_seen(unchecked):
    """By hand, for a context of 5: what each step reads, and that a full cache is let go."""
    model, read = made(5).model, list[list[int]]()
    steps = PromptStepper(model, 5.0)
    state = prompt_state(torch.tensor([[4, 5, 6]]))
    read_many, step_once = model.read, model.step

    def note_read(before: Any, ids: Tensor) -> Any:
        read.append(ids[0].tolist())
        return read_many(before, ids)

    def note_step(before: Any, tokens: Tensor) -> Any:
        read.append(tokens[:1].tolist())
        return step_once(before, tokens)

    model.read, model.step = note_read, note_step
    lasting = list[bool]()
    for token in (0, 7, 8, 9, 10, 11, 12):
        _, state = steps.step(state, torch.tensor([token]))
        lasting.append(state.state is not None)
    assert read == [[4, 5, 6], [7], [8], [7, 8, 9], [10], [11], [10, 11, 12]]
    assert lasting == [True, True, False, True, True, False, True]


@torch.no_grad()
def test_a_step_changes_no_state(unchecked):
    task = made(6)
    steps, state = task.build_stepper(), prompt_state(torch.tensor([[2, 4], [2, 5]]))
    for token in range(4, 20):
        tokens = torch.tensor([token % 9 + 4, token % 7 + 4])
        once, after = steps.step(state, tokens)
        steps.step(state, tokens.flip(0))
        again, _ = steps.step(state, tokens)
        assert torch.equal(once, again)
        turned, _ = steps.step(steps.select(state, torch.tensor([1, 0, 1])), tokens[[1, 0, 1]])
        torch.testing.assert_close(turned, once[[1, 0, 1]])
        state = after


def test_room_is_made_beforehand_where_that_is_enough():
    """An answer of at most half the context never has the prompt read twice."""
    task, long = made(24), (TEXT * 3)[:60]
    for length, kept in ((12, 12), (13, 24)):
        how = Decoding(search("greedy"), Constraints(length, min_length=length))
        assert task.complete([long], decoding=how) == task.complete([long[-kept:]], decoding=how)
