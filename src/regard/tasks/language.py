"""Language modelling: how likely a text is, what comes next, and how it could go on.

Documents stand in one stream with the mark of the end between them, before the first and after the
last, so that each begins where the one before ended: END d1 END d2 END.
b: rows   t: positions   n: rows of a search   v: vocabulary
"""

import math
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import groupby, islice
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attend.tap import observe
from regard.batch.pair import Pair
from regard.batch.windows import Window
from regard.decode.rules import FREE, Rules
from regard.decode.stepper import Hypothesis
from regard.tasks.loss import Loss, cross_entropy
from regard.tasks.translate import AT_ONCE, ROOM, Search, seeds_of
from regard.tasks.words import LONGEST, MOST, TOGETHER, Words
from regard.text.marks import AnyTokeniser
from regard.text.pieces import Pieces
from regard.text.special import END, PAD, START
from regard.text.tokeniser import Tokeniser

SHIFT = 1 + max(PAD, START, END)


class Completion(NamedTuple):
    """What was written after a prompt."""

    text: str
    score: float  # by which it was ranked
    log_prob: float
    ids: list[int]


class Language:
    """A language model and its vocabulary."""

    fields = ("text",)

    def __init__(self, model: nn.Module, text: AnyTokeniser):
        # any model with begin, read, output, logits and the steps of a search
        self.model: Any = model
        self.text = text
        self.reach = float(getattr(model, "context", math.inf))  # tokens that it can read
        self.end = end_of(text)

    def stream(self, records: Iterable[Mapping[str, str]]) -> Int[Tensor, " n"]:
        """All documents as one row of ids."""
        ids, texts = array("i", [self.end]), (record["text"] for record in records)
        while some := list(islice(texts, AT_ONCE)):
            for one in self.text.ids(some):
                ids.extend(one)
                ids.append(self.end)
        return torch.frombuffer(ids, dtype=torch.int32)

    def loss(self, window: Window, state: Any = None, smoothing: float = 0.0) -> tuple[Loss, Any]:
        """Of a window, read after `state`; and the state at its end."""
        before = self.model.begin(len(window.given)) if state is None else state
        states, after = self.model.read(before, window.given)
        loss = cross_entropy(
            self.model.output, states, window.wanted, window.valid, smoothing=smoothing
        )
        return loss, after

    @torch.no_grad()
    def likelihood(self, windows: Iterable[Window]) -> Loss:
        """-log p of all that is wanted; a window that is not fresh goes on after the last one."""
        self.model.eval()
        losses, state = list[Loss](), None
        for window in windows:
            loss, state = self.loss(window, None if window.fresh else state)
            losses.append(loss)
        total = torch.stack([loss.total.double() for loss in losses]).sum()
        return Loss(total, sum(loss.tokens for loss in losses))

    def complete(
        self,
        prompts: Sequence[str],
        search: Search,
        rules: Rules = FREE,
        *,
        told: Callable[[int], None] | None = None,
    ) -> list[list[Completion]]:
        """The n best ways to go on after each prompt, in their order.

        Prompts of equal length are read together: no padding, and no output depends on the others.
        Of a prompt the last tokens count, so many that an answer of at most half the context has
        room beside them, and else all that the model can read; see `Continued` for what follows.
        """
        starts = [[self.end, *ids] for ids in self.text.ids(list(prompts))]
        return self.go_on(starts, search, rules, told=told)

    @torch.no_grad()
    def go_on(
        self,
        starts: Sequence[Sequence[int]],
        search: Search,
        rules: Rules = FREE,
        *,
        told: Callable[[int], None] | None = None,
        heard: Callable[[Int[Tensor, " n"]], None] | None = None,
    ) -> list[list[Completion]]:
        """The same after rows of ids; `heard` is given the tokens of each step, as they come."""
        self.model.eval()
        longest = rules.max_length if isinstance(rules.max_length, int) else max(rules.max_length)
        kept = self.room(longest if longest <= self.reach / 2 else 0)
        pairs = [Pair(number, ids, []) for number, ids in enumerate(starts)]
        seeds, results = seeds_of(pairs), [list[Completion]() for _ in pairs]
        pairs = [pair._replace(source=pair.source[kept]) for pair in pairs]
        ordered = sorted(pairs, key=lambda pair: len(pair.source))
        for length, group in groupby(ordered, key=lambda pair: len(pair.source)):
            while some := list(islice(group, max(1, ROOM // length))):
                memory = prompted(torch.tensor([pair.source for pair in some]))
                limited = replace(rules, max_length=longest)
                drawn = [seeds[pair.number] for pair in some]
                found = search(self.continued(heard), memory, drawn, limited)
                for pair, best in zip(some, found, strict=True):
                    results[pair.number] = [self.told_as(one) for one in best]
                if told is not None:
                    told(len(some))
        return results

    def continued(self, heard: Callable[[Tensor], None] | None = None) -> "Continued":
        """For a search, whose special ids are ours, whatever those of the vocabulary are."""
        if isinstance(self.text, Tokeniser):
            return Continued(self.model, self.reach, heard)
        return Shifted(self.model, self.reach, self.end, heard)

    def told_as(self, found: Hypothesis) -> Completion:
        ids = self.ids_of(found.ids)
        return Completion(self.text.decode(ids), found.score, found.log_prob, ids)

    def ids_of(self, found: list[int]) -> list[int]:
        """Of the vocabulary, for those that a search has."""
        return found if isinstance(self.text, Tokeniser) else [n - SHIFT for n in found]

    @torch.no_grad()
    def next_words(
        self, text: str, count: int = 10, *, most: int = MOST, longest: int = LONGEST
    ) -> list[tuple[str, float]]:
        """The likeliest next words with their probabilities; see `words`.

        After white space it is a new word, else one that begins with the last word of the text. At
        most `most` beginnings are read, and `longest` tokens after what was typed.
        """
        if count < 1:
            raise ValueError(f"count must be 1 or more, not {count}")
        self.model.eval()
        typed = self.pieces.typed(text)
        longest = int(min(longest + len(typed.tail), self.reach / 2))
        given = [self.end, *typed.ids][self.room(longest)]
        words = Words(self.pieces, self.end, typed, count, most, longest)
        return words.search(self.model, given, min(TOGETHER, max(1, ROOM // len(given))))

    @cached_property
    def pieces(self) -> Pieces:
        return Pieces(self.text)

    @torch.no_grad()
    def next_tokens(self, prompt: str, count: int = 10) -> list[tuple[str, float]]:
        """The likeliest next tokens with their probabilities; "</s>" is the end."""
        self.model.eval()
        ids = torch.tensor([[self.end, *self.text.ids([prompt])[0]][self.room(0)]])
        log_probs, _ = Continued(self.model, self.reach).step(prompted(ids), ids[:, -1])
        best = log_probs[0].exp().topk(min(count, log_probs.shape[1]))
        pairs = zip(best.indices.tolist(), best.values.tolist(), strict=True)
        return [(self.text.token(number), p) for number, p in pairs]

    def looked(self, text: str) -> tuple[list[str], Float[Tensor, "t t"]]:
        """The tokens of a text, the mark before it first, and what each looked at, of those before.

        It is the last attention of the model, in the mean of its heads.
        """
        return self.looked_at([self.end, *self.text.ids([text])[0]])

    @torch.no_grad()
    def looked_at(self, ids: Sequence[int]) -> tuple[list[str], Float[Tensor, "t t"]]:
        """The same for a row of ids, or for as much of its end as the model reads."""
        ids = ids[self.room(0)]
        with observe(self.model.eval()) as seen:
            self.model.forced(None, torch.tensor([ids]))
        last = list(seen.whole().values())[-1][0]
        table = last.mean(0) if last.ndim == 3 else last
        # a model that looks at what was before, and not at itself, has one slot less
        return [self.text.token(n) for n in ids], F.pad(table, (0, len(ids) - table.shape[1]))

    def room(self, longest: int) -> slice:
        """The end of a prompt for which there is room beside so many tokens."""
        return slice(None) if math.isinf(self.reach) else slice(longest - int(self.reach), None)


class Prompted(NamedTuple):
    """Where each row of a search stands.

    `ids` are the last tokens of each row: those that `state` has read, if they may be needed again;
    without a state, those that are to be read before the next one. `last` is to be read next,
    whatever the search says.
    """

    state: Any
    ids: Int[Tensor, "n t"]
    last: Int[Tensor, " n"] | None


def prompted(ids: Int[Tensor, "b t"]) -> Prompted:
    """Before anything is read: a search begins by reading all of the prompts."""
    return Prompted(None, ids[:, :-1], ids[:, -1])


class Continued:
    """A language model for a search, which begins with START: here it begins after a prompt.

    A model that reads `reach` tokens and no more goes on, when it has read so many, from the last
    half of them: it reads those anew, as if nothing had been before.
    """

    def __init__(self, model: Any, reach: float, heard: Callable[[Tensor], None] | None = None):
        self.model, self.reach, self.heard = model, reach, heard

    def start(self, memory: Prompted) -> Prompted:
        return memory

    def step(
        self, state: Prompted, tokens: Int[Tensor, " n"]
    ) -> tuple[Float[Tensor, "n v"], Prompted]:
        token = tokens if state.last is None else state.last
        if self.heard is not None and state.last is None:
            self.heard(tokens)
        ids = torch.cat([state.ids, token[:, None]], 1)
        if state.state is None:
            states, after = self.model.read(self.model.begin(len(ids)), ids)
            log_probs = self.model.logits(states[:, -1]).log_softmax(-1)
        else:
            log_probs, after = self.model.step(state.state, token)
        read = ids.shape[1]
        if math.isinf(self.reach):
            return log_probs, Prompted(after, ids[:, read:], None)
        if read < self.reach:
            return log_probs, Prompted(after, ids, None)
        # full: nothing of the cache is of use now, and `select` need not move it
        return log_probs, Prompted(None, ids[:, read - read // 2 :], None)

    def select(self, state: Prompted, rows: Int[Tensor, " m"]) -> Prompted:
        last = None if state.last is None else state.last[rows]
        known = None if state.state is None else self.model.select(state.state, rows)
        return Prompted(known, state.ids[rows], last)


class Shifted(Continued):
    """The same over a vocabulary whose ids are not ours: a search sees them `SHIFT` higher.

    Below them are PAD and START, which are never said, and END, in the place of the vocabulary's.
    """

    def __init__(
        self, model: Any, reach: float, end: int, heard: Callable[[Tensor], None] | None = None
    ):
        super().__init__(model, reach, heard)
        self.end = end

    def step(
        self, state: Prompted, tokens: Int[Tensor, " n"]
    ) -> tuple[Float[Tensor, "n v"], Prompted]:
        log_probs, after = super().step(state, tokens - SHIFT)
        below = log_probs.new_full((len(log_probs), SHIFT), -torch.inf)
        below[:, END] = log_probs[:, self.end]
        log_probs[:, self.end] = -torch.inf
        return torch.cat([below, log_probs], 1), after


def end_of(text: AnyTokeniser) -> int:
    """The id between documents."""
    if isinstance(text, Tokeniser):
        return END
    if text.special.end is None:
        raise ValueError("the vocabulary has no token for the end of a text")
    return text.special.end
