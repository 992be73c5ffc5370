"""How far attention tells why a model said what it said: beside gradients, and by trying.

    attention      how much a token was looked at: by the pool, or by all that looked, in the mean
    gradient       |x . d log p / d x|, x its vector, p the probability of what the model said
    without it     log p(said | text) - log p(said | text without the token)

Jain & Wallace 2019 (N19-1357): does attention agree with the other two, and does it matter where it
is? Wiegreffe & Pinter 2019 (D19-1002): is uniform attention as good? And the simplest test: is a
word that was looked at missed more than any other?
"""

from collections.abc import Sequence
from statistics import mean
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from regard.attention.observe import Edit, intervene, join_calls, observe
from regard.data.corpus import Record
from regard.layers.embedding import Embedding
from regard.metrics.rank_correlation import kendall_tau, top_overlap
from regard.run import Run
from regard.tasks.base import Readout

TOP_TOKENS = 3  # tokens that are compared as the most important


class TokenImportance(NamedTuple):
    """How much it matters, three times."""

    text: str
    attention: float
    gradient: float
    leave_one_out: float


class FaithfulnessReport(NamedTuple):
    """Of one text. Changes of log p are what the edit took away; `turned`: whether it was undone.

    `turned` is about the verdict, and None where a whole text was said.
    """

    output: str
    tokens: list[TokenImportance]
    tau_gradient: float
    tau_leave_one_out: float
    top_gradient: float
    top_leave_one_out: float
    uniform_drop: float
    permuted_drop: float
    top_token_drop: float
    other_tokens_drop: float
    label_changes: tuple[bool, bool] | None


def faithfulness(run: Run, record: Record, seed: int = 0) -> FaithfulnessReport:
    """All of it, for one text."""
    model = run.model.eval()
    scorer = run.task.readout(record)
    if len(scorer.removable) < 2:
        raise ValueError("--faithfulness needs a text of two tokens or more")
    positions = list(scorer.removable)
    with torch.no_grad():
        label = None if scorer.predict_class is None else scorer.predict_class(scorer.ids)
        full_log_p, attention_by_token = attention_per_token(model, scorer)
        drops = [
            full_log_p - float(scorer.log_prob(without_token(scorer.ids, position)))
            for position in positions
        ]
    gradient_by_token = gradient_per_token(model, scorer)
    attention = [attention_by_token[position] for position in positions]
    gradient = [gradient_by_token[position] for position in positions]
    generator = torch.Generator().manual_seed(seed)
    edits: dict[str, Edit] = {"uniform": uniform, "permuted": build_permutation_edit(generator)}
    edit_drops, label_changes = dict[str, float](), list[bool]()
    for name, edit in edits.items():
        with (
            torch.no_grad(),
            intervene(model, dict[str, Edit].fromkeys(scorer.attentions, edit)),
        ):
            edit_drops[name] = full_log_p - float(scorer.log_prob(scorer.ids))
            if scorer.predict_class is not None:
                label_changes.append(scorer.predict_class(scorer.ids) != label)
    top_index = max(range(len(positions)), key=attention.__getitem__)
    other_drops = [drop for index, drop in enumerate(drops) if index != top_index]
    tokens = [
        TokenImportance(scorer.tokens[position], *numbers)
        for position, *numbers in zip(positions, attention, gradient, drops, strict=True)
    ]
    return FaithfulnessReport(
        scorer.output,
        tokens,
        kendall_tau(attention, gradient),
        kendall_tau(attention, drops),
        top_overlap(attention, gradient, TOP_TOKENS),
        top_overlap(attention, drops, TOP_TOKENS),
        edit_drops["uniform"],
        edit_drops["permuted"],
        drops[top_index],
        mean(other_drops),
        (label_changes[0], label_changes[1]) if label_changes else None,
    )


@torch.no_grad()
def attention_per_token(model: nn.Module, scorer: Readout) -> tuple[float, list[float]]:
    """log p of what was said, and how much each token was looked at, in the mean."""
    with observe(model, scorer.attentions) as weights:
        log_p = float(scorer.log_prob(scorer.ids))
    size = len(scorer.ids)
    mean_weights = [table[..., :size].flatten(0, -2).mean(0) for table in weights.joined().values()]
    return log_p, torch.stack(mean_weights).mean(0).tolist()


def gradient_per_token(model: nn.Module, scorer: Readout) -> list[float]:
    """|x . d log p / d x| for the vector x of each token."""
    embeddings: list[Tensor] = []

    def capture_embeddings(_: nn.Module, ids: tuple[Any, ...], vectors: Tensor) -> Tensor | None:
        if embeddings or ids[0].shape[-1] < len(scorer.ids):
            return None
        if ids[0].flatten()[: len(scorer.ids)].tolist() != scorer.ids:
            return None
        vectors = vectors.detach().requires_grad_()
        embeddings.append(vectors)
        return vectors

    hooks = [
        m.register_forward_hook(capture_embeddings)
        for m in model.modules()
        if isinstance(m, Embedding)
    ]
    try:
        log_p = scorer.log_prob(scorer.ids)
    finally:
        for hook in hooks:
            hook.remove()
    if not embeddings:
        raise ValueError("the model does not read its tokens by vectors: there is no gradient")
    [gradient] = torch.autograd.grad(log_p, embeddings)
    return (gradient * embeddings[0]).sum(-1).abs().flatten()[: len(scorer.ids)].tolist()


def gradient_attention(run: Run, record: Record) -> dict[str, Tensor]:
    """a da of every weight a, where da = d log p / da: what was said would be less likely without.

    By attention, [b (h) q k]; what speaks against it is 0 (Chefer et al. 2021, 2103.15679, eq. 5).
    """
    scorer, captured = run.task.readout(record), dict[str, list[Tensor]]()

    def build_capture_edit(name: str) -> Edit:
        def edit(weights: Tensor) -> Tensor:
            captured.setdefault(name, []).append(weights)
            return weights

        return edit

    with intervene(
        run.model.eval(), {name: build_capture_edit(name) for name in scorer.attentions}
    ):
        log_p = scorer.log_prob(scorer.ids)
    all_weights = [weights for calls in captured.values() for weights in calls]
    gradients = iter(torch.autograd.grad(log_p, all_weights))
    return {
        name: join_calls([(a * next(gradients)).clamp(min=0).detach() for a in calls])
        for name, calls in captured.items()
    }


def without_token(ids: Sequence[int], position: int) -> list[int]:
    return [*ids[:position], *ids[position + 1 :]]


def uniform(weights: Tensor) -> Tensor:
    """The same for all that may be looked at; a row keeps its sum."""
    allowed = (weights > 0).to(weights)
    return allowed / allowed.sum(-1, keepdim=True).clamp(min=1) * weights.sum(-1, keepdim=True)


def build_permutation_edit(generator: torch.Generator) -> Edit:
    """The weights of a row in another order, among what may be looked at."""

    def edit(weights: Tensor) -> Tensor:
        allowed = weights > 0
        # what may be looked at first, in an order by chance: its weights go to its places
        random_keys = torch.rand(weights.shape, generator=generator) + (~allowed) * 2.0
        order, positions = random_keys.argsort(-1), torch.argsort((~allowed).int(), stable=True)
        return torch.zeros_like(weights).scatter(-1, positions, weights.gather(-1, order))

    return edit
