"""How far attention tells why a model said what it said: beside gradients, and by trying.

    attention      how much a token was looked at: by the pool, or by all that looked, in the mean
    gradient       |x . d log p / d x|, x its vector, p the probability of what the model said
    without it     log p(said | text) - log p(said | text without the token)

Jain & Wallace 2019 (N19-1357): does attention agree with the other two, and does it matter where it
is? Wiegreffe & Pinter 2019 (D19-1002): is uniform attention as good? And the simplest test: is a
word that was looked at missed more than any other?
"""

from collections.abc import Callable, Sequence
from statistics import mean
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from regard.attend.tap import Edit, intervene, joined, named_attentions, observe
from regard.batch.pair import Pair, collate
from regard.encode.embed import Embedding
from regard.metric.rank import kendall, overlap
from regard.tasks.inputs import BySentence, Marked, Spelled
from regard.train.classify import ClassifyRun, records_of
from regard.train.run import Run
from regard.train.translate import TranslateRun

TOP = 3  # tokens that are compared as the most important


class Token(NamedTuple):
    """How much it matters, three times."""

    text: str
    attention: float
    gradient: float
    without: float


class Trust(NamedTuple):
    """Of one text. Changes of log p are what the edit took away; `turned`: whether it was undone.

    `turned` is about the verdict, and None where a whole text was said.
    """

    said: str
    tokens: list[Token]
    tau_gradient: float
    tau_without: float
    top_gradient: float
    top_without: float
    uniform: float
    permuted: float
    most: float
    random: float
    turned: tuple[bool, bool] | None


class Reading(NamedTuple):
    """A text as ids, what was said to it, and how likely that is for any other ids."""

    ids: list[int]
    tokens: list[str]
    free: range  # places of ids that may be left out: no marks
    said: str
    log_p: Callable[[Sequence[int]], Tensor]
    names: tuple[str, ...]  # attentions that are looked at
    best: Callable[[Sequence[int]], int] | None  # the verdict


def reading(run: Run, text: str) -> Reading:
    match run:
        case ClassifyRun():
            return judged(run, text)
        case TranslateRun():
            return translated(run, text)
        case _:
            raise ValueError(
                f"trust is told of classify and translate, not of {run.settings.task} yet"
            )


def judged(run: ClassifyRun, text: str) -> Reading:
    task = run.task
    if isinstance(task.inputs, Spelled | BySentence):
        kind = run.settings.model.kind
        raise ValueError(f"trust is told of models that read a row of tokens, not of {kind} yet")
    [row] = task.inputs.rows(records_of([text]), run.longest)

    def logits(ids: Sequence[int]) -> Tensor:
        return task.model(task.inputs.tensors([list(ids)]))[0].log_softmax(-1)

    with torch.no_grad():
        label = int(logits(row).argmax())
    names = tuple(named_attentions(task.model))
    tokens = task.inputs.tokens(row)
    free = range(1 if isinstance(task.inputs, Marked) else 0, len(row) - 1)  # no marks
    said = task.labels.names[label]
    return Reading(
        list(row),
        tokens,
        free,
        said,
        lambda ids: logits(ids)[label],
        names,
        lambda ids: int(logits(ids).argmax()),
    )


def translated(run: TranslateRun, text: str) -> Reading:
    run.check([text], "TEXT")
    task, said = run.task, run(text)
    ids = task.source.ids([text])[0]
    model = task.model

    def log_p(some: Sequence[int]) -> Tensor:
        batch = collate([Pair(0, list(some), said.ids)])
        states = model.forced(model.remember(batch.source, batch.source_valid), batch.target_in)
        shares = model.logits(states).log_softmax(-1)
        return shares.gather(-1, batch.target_out[..., None]).sum()

    tokens = [task.source.token(n) for n in ids]
    return Reading(ids, tokens, range(len(ids)), said.text, log_p, task.cross, None)


def trust(run: Run, text: str, seed: int = 0) -> Trust:
    """All of it, for one text."""
    model = run.model.eval()
    read = reading(run, text)
    if len(read.free) < 2:
        raise ValueError("trust needs a text of two tokens or more")
    places = list(read.free)
    with torch.no_grad():
        verdict = None if read.best is None else read.best(read.ids)
        whole, looked = seen(model, read)
        without = [whole - float(read.log_p(left(read.ids, at))) for at in places]
    pulls = gradients(model, read)
    attention = [looked[at] for at in places]
    gradient = [pulls[at] for at in places]
    draw = torch.Generator().manual_seed(seed)
    edits: dict[str, Edit] = {"uniform": uniform, "permuted": permuting(draw)}
    after, turned = dict[str, float](), list[bool]()
    for name, edit in edits.items():
        with torch.no_grad(), intervene(model, dict[str, Edit].fromkeys(read.names, edit)):
            after[name] = whole - float(read.log_p(read.ids))
            if read.best is not None:
                turned.append(read.best(read.ids) != verdict)
    top = max(range(len(places)), key=attention.__getitem__)
    others = [drop for n, drop in enumerate(without) if n != top]
    tokens = [
        Token(read.tokens[at], *numbers)
        for at, *numbers in zip(places, attention, gradient, without, strict=True)
    ]
    return Trust(
        read.said,
        tokens,
        kendall(attention, gradient),
        kendall(attention, without),
        overlap(attention, gradient, TOP),
        overlap(attention, without, TOP),
        after["uniform"],
        after["permuted"],
        without[top],
        mean(others),
        (turned[0], turned[1]) if turned else None,
    )


@torch.no_grad()
def seen(model: nn.Module, read: Reading) -> tuple[float, list[float]]:
    """log p of what was said, and how much each token was looked at, in the mean."""
    with observe(model, read.names) as weights:
        log_p = float(read.log_p(read.ids))
    size = len(read.ids)
    tables = [one[..., :size].flatten(0, -2).mean(0) for one in weights.whole().values()]
    return log_p, torch.stack(tables).mean(0).tolist()


def gradients(model: nn.Module, read: Reading) -> list[float]:
    """|x . d log p / d x| for the vector x of each token."""
    found: list[Tensor] = []

    def keep(_: nn.Module, ids: tuple[Any, ...], vectors: Tensor) -> Tensor | None:
        if found or ids[0].shape[-1] < len(read.ids):
            return None
        if ids[0].flatten()[: len(read.ids)].tolist() != read.ids:
            return None
        vectors = vectors.detach().requires_grad_()
        found.append(vectors)
        return vectors

    hooks = [m.register_forward_hook(keep) for m in model.modules() if isinstance(m, Embedding)]
    try:
        log_p = read.log_p(read.ids)
    finally:
        for hook in hooks:
            hook.remove()
    if not found:
        raise ValueError("the model does not read its tokens by vectors: there is no gradient")
    [pull] = torch.autograd.grad(log_p, found)
    return (pull * found[0]).sum(-1).abs().flatten()[: len(read.ids)].tolist()


def pulled(run: Run, text: str) -> dict[str, Tensor]:
    """a da of every weight a, where da = d log p / da: what was said would be less likely without.

    By attention, [b (h) q k]; what speaks against it is 0 (Chefer et al. 2021, 2103.15679, eq. 5).
    """
    read, kept = reading(run, text), dict[str, list[Tensor]]()

    def keeping(name: str) -> Edit:
        def edit(weights: Tensor) -> Tensor:
            kept.setdefault(name, []).append(weights)
            return weights

        return edit

    with intervene(run.model.eval(), {name: keeping(name) for name in read.names}):
        log_p = read.log_p(read.ids)
    flat = [weights for calls in kept.values() for weights in calls]
    slopes = iter(torch.autograd.grad(log_p, flat))
    return {
        name: joined([(a * next(slopes)).clamp(min=0).detach() for a in calls])
        for name, calls in kept.items()
    }


def left(ids: Sequence[int], at: int) -> list[int]:
    return [*ids[:at], *ids[at + 1 :]]


def uniform(weights: Tensor) -> Tensor:
    """The same for all that may be looked at; a row keeps its sum."""
    may = (weights > 0).to(weights)
    return may / may.sum(-1, keepdim=True).clamp(min=1) * weights.sum(-1, keepdim=True)


def permuting(draw: torch.Generator) -> Edit:
    """The weights of a row in another order, among what may be looked at."""

    def edit(weights: Tensor) -> Tensor:
        may = weights > 0
        # what may be looked at first, in an order by chance: its weights go to its places
        chance = torch.rand(weights.shape, generator=draw) + (~may) * 2.0
        to, places = chance.argsort(-1), torch.argsort((~may).int(), stable=True)
        return torch.zeros_like(weights).scatter(-1, places, weights.gather(-1, to))

    return edit
