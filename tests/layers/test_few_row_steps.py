"""A step by one call of the kernel for few rows is the step of a prepared stack."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from regard.attention.masks import causal
from regard.kernels import compiled, few_rows, int8, linear, prepared
from regard.layers import step_state
from regard.layers.few_row_steps import FewRowSteps, few_row_steps
from regard.layers.prepared_stack import prepare_stack
from regard.layers.transformer_block import TransformerBlock, TransformerStack
from regard.models.catalogue import build_model

pytestmark = [
    pytest.mark.skipif(compiled.native is None, reason="regard was built without kernels"),
    pytest.mark.usefixtures("unchecked"),
]
SIZE, ROWS = 30, 3
FORMS = [
    {},
    {"norm": "pre", "activation": "swish"},
    {"activation": "tanh_gelu", "heads": 1, "dim": 20},
    {"dim": 68, "hidden_dim": 132, "heads": 2},
]


@pytest.fixture(autouse=True)
def limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the kernel compute all rows, and small products of torch use 8 bits too."""
    monkeypatch.setattr(few_rows, "MAX_FLOAT_ROWS", 8)
    for module in (linear, prepared):
        monkeypatch.setattr(module, "MIN_PACKED_SIZE", 0)


def with_wide_weights(model: Any) -> Any:
    for weight in model.parameters():
        nn.init.normal_(weight, std=0.4)
    return model.eval()


def steps_of(model: Any, state: Any) -> list[Tensor]:
    """Return log-probabilities of steps, between which rows change places and leave."""
    results, rows = [], torch.arange(ROWS)
    for number, selected in enumerate([None, [2, 0, 0], None, [1, 1, 2, 0], [3, 1], None]):
        if selected is not None:
            rows = torch.tensor(selected)
            state = model.select(state, rows)
        log_probs, state = model.step(state, 4 + (torch.arange(len(rows)) + number) % 7)
        results.append(log_probs)
    return results


def compare(model: Any, memory: Any, tolerance: float = 1e-4) -> None:
    state = model.start(memory)
    if not isinstance(state, step_state.StepState):  # a prompt of GPT-2 comes first
        _, state = model.step(state, torch.tensor([4, 5, 6]))
    assert isinstance(state.few_rows, FewRowSteps)
    ours, expected = steps_of(model, state), steps_of(model, state._replace(few_rows=None))
    for x, y in zip(ours, expected, strict=True):
        torch.testing.assert_close(x, y, atol=tolerance, rtol=tolerance)


@pytest.mark.parametrize("uses_int8", [False, True])
@pytest.mark.parametrize("form", FORMS)
@torch.no_grad()
def test_a_transformer(form: dict[str, Any], uses_int8: bool, seed):
    sizes = {"source_size": SIZE, "target_size": SIZE, "dim": 16, "heads": 4, "layers": 2}
    model = with_wide_weights(build_model("transformer", {**sizes, **form}))
    if uses_int8:
        if not few_rows.has_dot_instructions():
            pytest.skip("the processor has no dot product of bytes")
        int8.mark_int8(model)
    source = torch.arange(ROWS * 7).reshape(ROWS, 7) % (SIZE - 4) + 4
    valid = torch.arange(7) < torch.tensor([7, 4, 6])[:, None]
    compare(model, model.remember(source, valid), 1e-3 if uses_int8 else 1e-4)


@pytest.mark.parametrize("uses_int8", [False, True])
@torch.no_grad()
def test_threads_share_large_products(uses_int8: bool, seed):
    sizes = {"source_size": SIZE, "target_size": SIZE, "dim": 256, "heads": 4, "layers": 1}
    model = build_model("transformer", sizes).eval()
    if uses_int8:
        if not few_rows.has_dot_instructions():
            pytest.skip("the processor has no dot product of bytes")
        int8.mark_int8(model)
    source = torch.arange(ROWS * 7).reshape(ROWS, 7) % (SIZE - 4) + 4
    state = model.start(model.remember(source, torch.ones_like(source, dtype=torch.bool)))
    assert isinstance(state.few_rows, FewRowSteps)
    threads, results = torch.get_num_threads(), []
    try:
        for number in (1, 2, 3):
            torch.set_num_threads(number)
            results.append(model.step(state, torch.arange(ROWS) + 4)[0])
    finally:
        torch.set_num_threads(threads)
    for result in results[1:]:
        torch.testing.assert_close(result, results[0])


@torch.no_grad()
def test_gpt2(seed):
    sizes = {"size": SIZE, "dim": 16, "heads": 4, "layers": 2, "max_positions": 24}
    model = with_wide_weights(build_model("gpt2", sizes))
    _, memory = model.read(model.begin(ROWS), torch.randint(4, SIZE, (ROWS, 5)))
    compare(model, memory)


@torch.no_grad()
def test_heads_in_groups(seed):
    blocks = [TransformerBlock(16, 4, 32, groups=2, norm="pre") for _ in range(2)]
    plain = TransformerStack(blocks).eval()
    stack, states = prepare_stack(plain), torch.randn(ROWS, 4, 16)
    assert stack is not None
    _, past = plain(states[:, :3], mask=causal)
    state = step_state.continue_steps(stack, past)
    assert state.few_rows is not None
    x, _ = state.step(states[:, 3])
    torch.testing.assert_close(x, plain(states, mask=causal)[0][:, 3], atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_what_the_kernel_does_not_know_keeps_the_products_of_torch(seed):
    def steps(rows: int = 2, **options: Any) -> FewRowSteps | None:
        sizes = {"source_size": SIZE, "target_size": SIZE, "dim": 16, "heads": 4, "layers": 2}
        model = build_model("transformer", {**sizes, **options}).eval()
        stack = prepare_stack(model.decoder)
        assert stack is not None
        return few_row_steps(stack, rows)

    assert steps() is not None
    assert steps(rows=9) is None
    assert steps(activation="gelu") is None
    assert steps(hidden_dim=30) is None
    model = build_model("transformer", {"source_size": 9, "target_size": 9, "dim": 16, "heads": 4})
    stack = prepare_stack(model.double().eval().decoder)
    assert stack is not None
    assert few_row_steps(stack, 1) is None
