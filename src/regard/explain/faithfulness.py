"""Test whether attention explains a prediction. Three measures of the importance of a token:

    attention        its weight, averaged over all queries and attentions
    gradient         |x . d log p / d x|, x its vector, p the probability of the prediction
    leave-one-out    log p(prediction | text) - log p(prediction | text without the token)

Jain & Wallace 2019 (N19-1357): does attention agree with the other two, and does the prediction
change if the weights are permuted? Wiegreffe & Pinter 2019 (D19-1002): does it change if they are
uniform? The simplest test: does removing the most attended token matter more than another?
"""

from collections.abc import Sequence
from statistics import mean
from typing import NamedTuple

import torch
from torch import Tensor, nn

from regard.attention.observe import Edit, intervene, join_calls, observe
from regard.data.corpus import Record
from regard.errors import InputError
from regard.layers.embedding import Embedding
from regard.metrics.rank_correlation import kendall_tau, top_overlap
from regard.run import Run
from regard.tasks.base import Readout

TOP_TOKENS = 3  # number of most important tokens that are compared


class TokenImportance(NamedTuple):
    """Three measures of the importance of a token."""

    text: str
    attention: float
    gradient: float
    leave_one_out: float


class FaithfulnessReport(NamedTuple):
    """The tests of one text. A drop is the decrease of log p by an edit.

    `label_changes` is whether uniform and permuted attention change the predicted class; it is None
    for tasks that predict a text.
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
    """Run all tests for one record."""
    model = run.model.eval()
    scorer = run.task.readout(record)
    if len(scorer.removable) < 2:
        raise InputError("--faithfulness needs a text of two tokens or more; give a longer one")
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
    """Return log p of the prediction, and the mean attention weight of each token."""
    with observe(model, scorer.attentions) as weights:
        log_p = float(scorer.log_prob(scorer.ids))
    size = len(scorer.ids)
    mean_weights = [table[..., :size].flatten(0, -2).mean(0) for table in weights.joined().values()]
    return log_p, torch.stack(mean_weights).mean(0).tolist()


def gradient_per_token(model: nn.Module, scorer: Readout) -> list[float]:
    """|x . d log p / d x| for the vector x of each token."""
    embeddings: list[Tensor] = []

    def capture_embeddings(_: nn.Module, ids: tuple[Tensor, ...], vectors: Tensor) -> Tensor | None:
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
        raise InputError("--faithfulness needs a model that embeds tokens; this one does not")
    [gradient] = torch.autograd.grad(log_p, embeddings)
    return (gradient * embeddings[0]).sum(-1).abs().flatten()[: len(scorer.ids)].tolist()


def gradient_attention(run: Run, record: Record) -> dict[str, Tensor]:
    """max(0, a . d log p / d a) for every attention weight a, as [b (h) q k] by attention.

    Chefer et al. 2021 (2103.15679), eq. 5.
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
        name: join_calls([(a * next(gradients)).clamp(min=0).detach().cpu() for a in calls])
        for name, calls in captured.items()
    }


def without_token(ids: Sequence[int], position: int) -> list[int]:
    return [*ids[:position], *ids[position + 1 :]]


def uniform(weights: Tensor) -> Tensor:
    """Replace positive weights by their mean; each row keeps its sum."""
    allowed = (weights > 0).to(weights)
    return allowed / allowed.sum(-1, keepdim=True).clamp(min=1) * weights.sum(-1, keepdim=True)


def build_permutation_edit(generator: torch.Generator) -> Edit:
    """Return an edit that permutes the positive weights of each row."""

    def edit(weights: Tensor) -> Tensor:
        allowed = weights > 0
        # positive weights first, in random order; they are scattered to the allowed positions
        draws = torch.rand(weights.shape, generator=generator).to(weights.device)
        random_keys = draws + (~allowed) * 2.0
        order, positions = random_keys.argsort(-1), torch.argsort((~allowed).int(), stable=True)
        return torch.zeros_like(weights).scatter(-1, positions, weights.gather(-1, order))

    return edit
