"""What every model obeys that writes of a text or an image: each law is tried on each model.

A model that is added to the catalogue is tried here without further ado; `VARIANTS` adds settings
that change what is computed. Shapes are checked in the first law; the others go without, for speed.
"""

import math
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor, nn

from regard.attention.observe import named_attentions, observe
from regard.models.catalogue import build_model
from regard.tasks.catalogue import model_kinds

SOURCE, TARGET, START = 11, 13, 1
SMALL = {"source_size": SOURCE, "target_size": TARGET, "dim": 8}
VARIANTS: list[tuple[str, dict[str, Any]]] = [
    *((kind, {}) for kind in model_kinds("translate")),
    ("encdec", {"hidden_dim": 6, "output_dim": 5}),
    ("seq2seq", {"layers": 1, "reverse": False}),
    ("rnnsearch", {"reset": "after", "readout": "current", "hidden_dim": 6, "align_dim": 5}),
    ("rnnsearch", {"score": "general", "normalize": "sparsemax"}),
    ("luong", {"score": "dot", "input_feeding": False, "layers": 1}),
    ("luong", {"score": "additive", "hidden_dim": 6, "reverse": False}),
    ("luong", {"score": "location", "max_positions": 12}),
    ("luong", {"window": "local_m", "radius": 2}),
    ("luong", {"window": "local_m", "radius": 2, "input_feeding": False}),
    ("luong", {"window": "local_p", "radius": 2, "normalize": "entmax15"}),
    ("transformer", {"norm": "pre", "tie_embeddings": "decoder", "decoder_layers": 1}),
    ("transformer", {"positions": "learned", "max_positions": 12, "heads": 2, "score": "additive"}),
    ("rnmt", {"layers": 3, "decoder_layers": 4, "layer_norm": False, "heads": 2}),
    ("rnmt", {"decoder_layers": 1, "score": "scaled_dot", "normalize": "sparsemax"}),
    ("rnmt", {"query_state": "current"}),
]
IMAGED = [
    *((kind, {}) for kind in model_kinds("caption")),
    ("show_attend", {"score": "general", "normalize": "sparsemax", "hidden_dim": 6}),
]
VIEW = {"size": 8, "channels": 1, "image_dim": 4, "image_layers": 2, "pooling_layers": 2}


def name(variant: tuple[str, dict[str, Any]]) -> str:
    kind, settings = variant
    return " ".join([kind, *(f"{key}={value}" for key, value in settings.items())])


every_model = pytest.mark.parametrize("variant", [*VARIANTS, *IMAGED], ids=name)
every_reader = pytest.mark.parametrize("variant", VARIANTS, ids=name)


class Case(NamedTuple):
    model: Any
    source: Tensor
    valid: Tensor | None  # of an image, all is real
    target: Tensor

    def states(self) -> Tensor:
        return self.model.teacher_forced(self.model.remember(self.source, self.valid), self.target)

    def log_probabilities(self) -> Tensor:
        return self.model.logits(self.states()).log_softmax(-1)


def case(variant: tuple[str, dict[str, Any]], dtype: torch.dtype = torch.float64) -> Case:
    """Weights are drawn wide: some start at 0, and a law that holds there may not hold after."""
    model = made(variant)
    for weight in model.parameters():
        nn.init.normal_(weight, std=0.4)
    if variant[0] in model_kinds("caption"):
        images = torch.randn(4, 1, 8, 8, dtype=dtype)
        return Case(model.to(dtype), images, None, written())
    valid = torch.arange(7) < torch.tensor([7, 3, 1, 5])[:, None]
    source = torch.randint(3, SOURCE, valid.shape) * valid
    return Case(model.to(dtype), source, valid, written())


def made(variant: tuple[str, dict[str, Any]]) -> Any:
    kind, settings = variant
    if variant[0] in model_kinds("caption"):
        return build_model(kind, {"target_size": TARGET, "dim": 8, **VIEW, **settings}).eval()
    return build_model(kind, {**SMALL, **settings}).eval()


def written() -> Tensor:
    target = torch.randint(3, TARGET, (4, 6))
    target[:, 0] = START
    return target


def stepped(model: Any, memory: Any, target: Tensor) -> Tensor:
    state, seen = model.start(memory), []
    for tokens in target.unbind(1):
        scores, state = model.step(state, tokens)
        seen.append(scores)
    return torch.stack(seen, 1)


def close(one: Tensor, other: Tensor) -> None:
    torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-10)


@every_model
@pytest.mark.parametrize("grad", [True, False], ids=["gradient", "no gradient"])
def test_stepping_is_teacher_forcing(variant, grad):
    it = case(variant)
    with torch.set_grad_enabled(grad):
        forced = it.log_probabilities()
        memory = it.model.remember(it.source, it.valid)
        close(stepped(it.model, memory, it.target), forced)
    assert forced.shape == (4, 6, TARGET)
    close(forced.exp().sum(-1), torch.ones(4, 6, dtype=torch.float64))


@every_model
def test_a_step_changes_no_state(variant, unchecked):
    """Two continuations of one state know nothing of each other."""
    it = case(variant)
    with torch.no_grad():
        state = it.model.start(it.model.remember(it.source, it.valid))
        _, state = it.model.step(state, it.target[:, 0])
        once, after = it.model.step(state, it.target[:, 1])
        other, _ = it.model.step(state, (it.target[:, 1] + 1) % TARGET)
        again, _ = it.model.step(state, it.target[:, 1])
        close(once, again)
        assert not torch.allclose(once, other)
        it.model.step(after, it.target[:, 2])


@every_reader
def test_padding_does_not_matter(variant, unchecked):
    """Neither how much of it there is, nor what is in it."""
    it = case(variant)
    assert it.valid is not None
    expected = it.states()
    more = torch.randint(SOURCE, (4, 4))
    source = torch.cat([torch.where(it.valid, it.source, SOURCE - 1), more], 1)
    valid = torch.cat([it.valid, torch.zeros(4, 4, dtype=torch.bool)], 1)
    close(it._replace(source=source, valid=valid).states(), expected)


@every_model
def test_a_row_does_not_see_the_others(variant, unchecked):
    it = case(variant)
    expected = it.states()
    lengths = [8] * 4 if it.valid is None else it.valid.sum(1).tolist()
    for row, length in enumerate(lengths):
        one = slice(row, row + 1)
        real = None if it.valid is None else it.valid[one, :length]
        alone = Case(it.model, it.source[one, :length], real, it.target[one])
        close(alone.states(), expected[one])
    order = torch.tensor([2, 0, 3, 1])
    real = None if it.valid is None else it.valid[order]
    moved = Case(it.model, it.source[order], real, it.target[order])
    close(moved.states(), expected[order])


@every_model
def test_the_future_is_not_seen(variant, unchecked):
    it = case(variant)
    expected = it.states()
    for position in range(1, 6):
        target = it.target.clone()
        target[:, position:] = (target[:, position:] + 1) % TARGET
        changed = it._replace(target=target).states()
        close(changed[:, :position], expected[:, :position])
        assert not torch.allclose(changed[:, position], expected[:, position])


@every_model
def test_the_source_is_seen(variant, unchecked):
    """Every real word of the source changes what is said of it, unless a window hides it."""
    it = case(variant)
    expected = it.states()
    reach = 1 if "normalize" in variant[1] or "window" in variant[1] else 7
    for position in range(reach):
        source = it.source.clone()
        if it.valid is None:
            source[0, 0, position, position] += 1
        else:
            source[0, position] = 3 + (source[0, position] - 2) % (SOURCE - 3)
        assert not torch.allclose(it._replace(source=source).states()[0], expected[0], rtol=1e-12)


@every_model
def test_select_reorders_repeats_and_drops(variant, unchecked):
    it = case(variant)
    model = it.model
    with torch.no_grad():
        memory = model.remember(it.source, it.valid)
        expected = stepped(model, memory, it.target)
        for rows in ([2, 0, 0], [3, 3, 1, 1, 0, 0], [0, 1, 2, 3], [1]):
            state = model.select(model.start(memory), torch.tensor(rows))
            given, seen = it.target[rows], []
            for t in range(3):
                scores, state = model.step(state, given[:, t])
                seen.append(scores)
            close(torch.stack(seen, 1), expected[rows][:, :3])
            # and once more in mid-sentence, from the rows that there are now
            again = torch.tensor([len(rows) - 1, 0])
            state = model.select(state, again)
            for t in range(3, 6):
                scores, state = model.step(state, given[again, t])
                close(scores, expected[rows][again, t])


@every_model
def test_rows_of_one_sentence_may_change_places(variant, unchecked):
    """What beam search does: rows with one source and different words so far."""
    it = case(variant)
    model, rows = it.model, torch.tensor([0, 0, 1, 1])
    with torch.no_grad():
        state = model.select(model.start(model.remember(it.source, it.valid)), rows)
        _, state = model.step(state, it.target[:, 1])
        plain, _ = model.step(state, it.target[:, 2])
        swap = torch.tensor([1, 0, 3, 2])
        swapped, _ = model.step(model.select(state, swap), it.target[swap, 2])
    close(swapped, plain[swap])


@every_model
def test_attention_to_the_source_can_be_seen(variant, unchecked):
    it = case(variant)
    if not it.model.cross_attentions:
        with pytest.raises(ValueError, match="no attention"), observe(it.model):
            pass
        return
    plain = it.states()
    with observe(it.model) as seen:
        close(it.states(), plain)
    assert set(it.model.cross_attentions) <= set(seen)
    for key in it.model.cross_attentions:
        weights = seen.joined()[key]
        assert weights.shape[0] == 4
        assert weights.shape[-2:] == (6, 4 if it.valid is None else 7)
        if it.valid is not None:
            assert not weights.movedim(0, -2).flatten(0, -3)[:, ~it.valid].any()
        total = weights.sum(-1)
        if "window" not in variant[1]:
            close(total, torch.ones_like(total))
        assert (total <= 1 + 1e-9).all()


@every_model
def test_a_search_sees_what_teacher_forcing_sees(variant, unchecked):
    """What is looked at after a search, read once more, is what the search itself looked at."""
    it = case(variant)
    if not it.model.cross_attentions:
        return
    with torch.no_grad(), observe(it.model, it.model.cross_attentions) as forced:
        it.states()
    with torch.no_grad(), observe(it.model, it.model.cross_attentions) as searched:
        stepped(it.model, it.model.remember(it.source, it.valid), it.target)
    for key in it.model.cross_attentions:
        close(searched.joined()[key], forced.joined()[key])


@every_reader
def test_what_is_seen_is_what_was_read_with(variant, unchecked):
    """The weights times the values are what the quick path gave."""
    it = case(variant)
    if not it.model.cross_attentions:
        return
    quick: dict[str, list[tuple[Tensor, Tensor]]] = {}
    hooks = [
        attention.register_forward_hook(
            lambda _, given, context, name=name: quick.setdefault(name, []).append(
                (given[1].values, context)
            )
        )
        for name, attention in named_attentions(it.model).items()
    ]
    with torch.no_grad():
        it.states()
        fast = {name: list(calls) for name, calls in quick.items()}
        quick.clear()
        with observe(it.model) as seen:
            it.states()
    for hook in hooks:
        hook.remove()
    assert set(fast) >= set(it.model.cross_attentions)
    for key, calls in fast.items():
        for (values, context), weights in zip(calls, seen[key], strict=True):
            close(weights.to(values) @ values, context)


@every_model
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
def test_gradients_are_finite_and_reach_every_parameter(variant, dtype, unchecked):
    it = case(variant, dtype)
    it.model.train()
    states = it.states()
    assert states.dtype == dtype
    nn.functional.cross_entropy(
        it.model.logits(states).flatten(0, 1), it.target.roll(-1, 1).flatten()
    ).backward()
    for key, weight in it.model.named_parameters():
        assert weight.grad is not None, key
        assert weight.grad.isfinite().all(), key
        assert weight.grad.any(), key


@every_model
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=["bfloat16", "float16"])
def test_gradients_are_finite_under_autocast(variant, dtype, unchecked):
    it = case(variant, torch.float32)
    it.model.train()
    with torch.autocast("cpu", dtype):
        states = it.states()
    states.float().square().mean().backward()
    for key, weight in it.model.named_parameters():
        assert weight.grad is None or weight.grad.isfinite().all(), key


@every_model
def test_dropout_drops_in_training_only(variant, unchecked):
    kind, settings = variant
    it = case((kind, {**settings, "dropout": 0.5}))
    assert torch.equal(it.states(), it.states())
    it.model.train()
    assert not torch.equal(it.states(), it.states())
    memory = it.model.remember(it.source, it.valid)
    seen = stepped(it.model, memory, it.target)
    assert seen.isfinite().all()


@pytest.mark.parametrize("kind", ["encdec", "seq2seq", "rnnsearch", "luong"])
def test_one_mask_on_the_states_for_a_sequence(kind):
    """With the same draw, stepping is teacher forcing in training too, and select moves masks."""
    it = case((kind, {"state_dropout": 0.5}))
    it.model.train()
    memory = it.model.remember(it.source, it.valid)
    with torch.random.fork_rng():
        forced = it.model.logits(it.model.teacher_forced(memory, it.target)).log_softmax(-1)
    first = it.model.start(memory)  # the same draw as `forced` made
    order = torch.tensor([1, 0, 3, 2])
    state, seen = it.model.select(first, order), []
    for tokens in it.target[order].unbind(1):
        scores, state = it.model.step(state, tokens)
        seen.append(scores)
    close(torch.stack(seen, 1), forced[order])
    plain = it.model.eval().teacher_forced(memory, it.target)
    assert not torch.allclose(it.model.logits(plain).log_softmax(-1), forced)


@every_model
def test_it_starts_without_knowing_anything(variant):
    """At the given start, an untrained model is close to ignorance, and no weight is NaN."""
    torch.manual_seed(7)
    model: Any = made(variant)
    it = case(variant, torch.float32)._replace(model=model)
    entropy = -(it.log_probabilities().exp() * it.log_probabilities()).sum(-1)
    assert entropy.mean() > 0.5 * math.log(TARGET)
