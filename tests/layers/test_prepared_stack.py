"""Prepared stacks compute what the plain ones do, which observation keeps."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from regard.attention.observe import intervene, observe, zero
from regard.decoding.beam import beam_search
from regard.decoding.constraints import Constraints
from regard.decoding.greedy import greedy_search
from regard.decoding.prompts import PromptStepper, prompt_state
from regard.decoding.sampling import sample
from regard.decoding.stepper import Hypothesis
from regard.kernels import linear, prepared
from regard.layers.prepared_stack import prepare_stack
from regard.layers.step_state import StepState
from regard.layers.transformer_block import TransformerBlock, TransformerStack
from regard.models.catalogue import build_model

SIZE, MAX_LENGTH = 30, 12
OPTIONS = [
    {},
    {"norm": "pre", "tie_embeddings": "decoder", "positions": "learned", "activation": "gelu"},
    {"tie_embeddings": "all", "output_bias": True, "positions": "halves", "activation": "swish"},
    {"layers": 2, "decoder_layers": 1, "scale_embeddings": False, "activation": "tanh"},
    {"score": "dot", "activation": "tanh_gelu"},
]
RULES = Constraints(
    MAX_LENGTH, min_length=3, no_repeat_ngram=2, prefix=[[5, 6], [], [7]], forbidden=(0, 1, 9)
)
SEARCHES: dict[str, Callable[..., list[list[Hypothesis]]]] = {
    "greedy": lambda stepper, memory: greedy_search(stepper, memory, 3, RULES),
    "beam": lambda stepper, memory: beam_search(
        stepper, memory, 3, 4, n_best=3, constraints=RULES, alpha=0.6
    ),
    "sample": lambda stepper, memory: sample(
        stepper, memory, [1, 2, 3], copies=3, constraints=RULES
    ),
}


@pytest.fixture(params=[True, False], ids=["packed", "small"])
def packs_weights(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let also small products use packed weights."""
    if request.param:
        for module in (linear, prepared):
            monkeypatch.setattr(module, "MIN_PACKED_SIZE", 0)


def with_wide_weights(model: Any) -> Any:
    torch.manual_seed(0)
    for weight in model.parameters():
        nn.init.normal_(weight, std=0.4)
    return model.eval()


def transformer(**options: Any) -> Any:
    sizes = {"source_size": SIZE, "target_size": SIZE, "dim": 16, "heads": 4, "layers": 2}
    return with_wide_weights(build_model("transformer", {**sizes, **options}))


def source() -> tuple[Tensor, Tensor]:
    ids = torch.arange(3 * 7).reshape(3, 7) % (SIZE - 4) + 4
    lengths = torch.tensor([7, 4, 6])
    return ids, torch.arange(7) < lengths[:, None]


def same_outputs(ours: list[list[Hypothesis]], plain: list[list[Hypothesis]]) -> bool:
    return all(
        x.ids == y.ids and x.log_prob == pytest.approx(y.log_prob, abs=1e-4)
        for best, plain_best in zip(ours, plain, strict=True)
        for x, y in zip(best, plain_best, strict=True)
    )


@pytest.mark.usefixtures("packs_weights", "unchecked")
@pytest.mark.parametrize("options", OPTIONS)
@torch.no_grad()
def test_searches_of_a_transformer(options: dict[str, Any]):
    model = transformer(**options)
    memory = model.remember(*source())
    assert isinstance(model.start(memory), StepState)
    with observe(model):
        plain_memory = model.remember(*source())
    for ours, plain in zip(memory.memory, plain_memory.memory, strict=True):
        torch.testing.assert_close(ours.keys[0], plain.keys[0], atol=1e-4, rtol=1e-4)
    for search in SEARCHES.values():
        with observe(model):
            expected = search(model, memory)
        assert same_outputs(search(model, memory), expected)


@pytest.mark.usefixtures("packs_weights", "unchecked")
@torch.no_grad()
def test_searches_of_gpt2():
    sizes = {"size": SIZE, "dim": 16, "heads": 4, "layers": 2, "max_positions": 24}
    model = with_wide_weights(build_model("gpt2", sizes))
    stepper, prompts = PromptStepper(model, 24.0), prompt_state(source()[0])
    for search in SEARCHES.values():
        with observe(model):
            expected = search(stepper, prompts)
        assert same_outputs(search(stepper, prompts), expected)


@pytest.mark.usefixtures("packs_weights", "unchecked")
@torch.no_grad()
def test_encoding_by_bert():
    sizes = {"size": SIZE, "dim": 16, "heads": 4, "layers": 2}
    model = with_wide_weights(build_model("bert", sizes))
    ids, valid = source()
    states = model.encode(ids, valid).states
    with observe(model):
        expected = model.encode(ids, valid).states
    torch.testing.assert_close(states[valid], expected[valid], atol=1e-4, rtol=1e-4)


@torch.no_grad()
def test_heads_in_groups():
    blocks = [TransformerBlock(16, 4, 32, groups=2, norm="pre") for _ in range(2)]
    stack = TransformerStack(blocks).eval()
    prepared_stack, states = prepare_stack(stack), torch.randn(2, 5, 16)
    assert prepared_stack is not None
    torch.testing.assert_close(prepared_stack.encode(states, None), stack(states)[0])


@torch.no_grad()
def test_a_state_can_be_used_again():
    """Neither a step nor a selection changes earlier states, also when memory is reused."""
    model = transformer().double()
    state = model.start(model.remember(*source()))
    tokens = torch.tensor([4, 5, 6])
    for _ in range(9):
        _, state = model.step(state, tokens)
    expected, _ = model.step(state, tokens)
    rows = torch.tensor([2, 2, 0])
    selected = model.select(model.select(state, rows), torch.tensor([2, 1, 0]))
    torch.testing.assert_close(
        model.step(selected, tokens[rows.flip(0)])[0], expected[rows.flip(0)]
    )
    torch.testing.assert_close(model.step(state, tokens)[0], expected)


@torch.no_grad()
def test_what_is_observed_edited_or_hooked_keeps_the_plain_path():
    model = transformer()
    with observe(model) as weights:
        greedy_search(model, model.remember(*source()), 3, RULES)
    assert all(weights.values())
    with intervene(model, {"decoder.layers.1.cross_attention": zero()}):
        assert prepare_stack(model.decoder) is None
    handle = model.decoder.layers[0].feed.register_forward_hook(lambda *_: None)
    assert prepare_stack(model.decoder) is None
    handle.remove()
    assert prepare_stack(model.decoder) is not None
    assert prepare_stack(transformer(score="additive").decoder) is None
    assert prepare_stack(transformer(normalize="sparsemax").decoder) is None
    with torch.enable_grad():
        assert prepare_stack(model.decoder) is None
    assert prepare_stack(model.decoder.train()) is None
