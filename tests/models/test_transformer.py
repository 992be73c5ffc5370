"""The transformer against torch's layers, and its settings."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from regard.models.transformer import Transformer

DIM, HEADS, HIDDEN, LAYERS, SIZE = 8, 2, 12, 2, 9
SOURCE = torch.tensor([[3, 5, 4, 6, 2], [6, 7, 2, 0, 0]])
TARGET = torch.tensor([[1, 4, 5, 3], [1, 8, 8, 2]])


def with_random_weights(model: Any) -> Any:
    for weight in model.parameters():
        nn.init.normal_(weight, std=0.5)
    return model.double().eval()


def load_torch_layer(block: nn.Module, torch_state: dict[str, Tensor]) -> None:
    """Load a layer of torch, whose in_proj has the rows of q, k and v."""
    state = {}
    for name, attention in (("self_attention", "self_attn"), ("cross_attention", "multihead_attn")):
        if f"{attention}.in_proj_weight" not in torch_state:
            continue
        for kind in ("weight", "bias"):
            q, k, v = torch_state[f"{attention}.in_proj_{kind}"].chunk(3)
            state[f"{name}.to_query.{kind}"] = q
            state[f"{name}.to_key.{kind}"] = k
            state[f"{name}.to_value.{kind}"] = v
            state[f"{name}.out.{kind}"] = torch_state[f"{attention}.out_proj.{kind}"]
    norms = ["self_norm", "feed_norm"]
    if "cross_attention.out.bias" in state:
        norms.insert(1, "cross_norm")
    names = {"linear1": "feed.widen", "linear2": "feed.narrow"}
    names |= {f"norm{i + 1}": name for i, name in enumerate(norms)}
    for torch_name, name in names.items():
        for kind in ("weight", "bias"):
            state[f"{name}.{kind}"] = torch_state[f"{torch_name}.{kind}"]
    block.load_state_dict(state)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_it_is_torchs_transformer(norm):
    """torch has a final norm in each case; the paper has none for post-norm."""
    pre = norm == "pre"
    model = with_random_weights(
        Transformer(
            *(SIZE, SIZE), dim=DIM, heads=HEADS, hidden_dim=HIDDEN, layers=LAYERS, norm=norm
        )
    )
    options = {"batch_first": True, "norm_first": pre, "dropout": 0.0, "dtype": torch.float64}
    last = [nn.LayerNorm(DIM, dtype=torch.float64) if pre else None for _ in range(2)]
    encoder = nn.TransformerEncoder(
        nn.TransformerEncoderLayer(DIM, HEADS, HIDDEN, **options),
        LAYERS,
        last[0],
        enable_nested_tensor=False,
    )
    decoder = nn.TransformerDecoder(
        nn.TransformerDecoderLayer(DIM, HEADS, HIDDEN, **options), LAYERS, last[1]
    )
    for stack, torch_stack in ((model.encoder, encoder), (model.decoder, decoder)):
        with_random_weights(torch_stack)
        for layer, torch_layer in zip(stack.layers, torch_stack.layers, strict=True):
            load_torch_layer(layer, dict(torch_layer.state_dict()))
        if pre:
            stack.norm.load_state_dict(torch_stack.norm.state_dict())

    position = torch.arange(5, dtype=torch.float64)[:, None]
    rate = 10_000 ** (-torch.arange(0, DIM, 2, dtype=torch.float64) / DIM)
    waves = torch.zeros(5, DIM, dtype=torch.float64)
    waves[:, 0::2], waves[:, 1::2] = (position * rate).sin(), (position * rate).cos()
    source = math.sqrt(DIM) * model.source_words.weight[SOURCE] + waves
    target = math.sqrt(DIM) * model.target_words.weight[TARGET] + waves[:4]
    padding = SOURCE == 0
    read = encoder(source, src_key_padding_mask=padding)
    states = decoder(
        target,
        read,
        tgt_mask=nn.Transformer.generate_square_subsequent_mask(4, dtype=torch.float64),
        memory_key_padding_mask=padding,
    )
    stack = model.teacher_forced(model.remember(SOURCE, ~padding), TARGET)
    torch.testing.assert_close(stack, states, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(("shared", "tables"), [("none", 3), ("decoder", 2), ("all", 1)])
def test_tables_are_shared(shared, tables):
    model = Transformer(SIZE, SIZE, dim=DIM, tie_embeddings=shared)
    assert [w.shape for w in model.parameters()].count((SIZE, DIM)) == tables
    names = list(model.state_dict())
    assert len({model.state_dict()[n].data_ptr() for n in names}) == len(names)  # none saved twice
    states = torch.randn(2, DIM)
    if shared != "none":
        table = model.source_words if shared == "all" else model.target_words
        torch.testing.assert_close(model.logits(states), states @ table.weight.T)


@pytest.mark.parametrize("scaled", [True, False])
def test_words_are_scaled(scaled):
    model = Transformer(SIZE, SIZE, dim=DIM, scale_embeddings=scaled)
    words = model.words(TARGET)
    factor = math.sqrt(DIM) if scaled else 1.0
    torch.testing.assert_close(words, factor * model.table.weight[TARGET])


def test_learned_positions_end_somewhere():
    model = Transformer(SIZE, SIZE, dim=DIM, positions="learned", max_positions=4)
    with pytest.raises(ValueError, match="position 5, but the table has only 4"):
        model.remember(SOURCE, SOURCE != 0)


def test_a_step_computes_one_position_only():
    """Keys and values of earlier words are in the cache."""
    model, widths = with_random_weights(Transformer(SIZE, SIZE, dim=DIM)), []
    model.decoder.layers[0].feed.register_forward_hook(
        lambda _, inputs, __: widths.append(inputs[0].shape[1])
    )
    with torch.no_grad():
        state = model.start(model.remember(SOURCE, SOURCE != 0))
        for tokens in TARGET.unbind(1):
            _, state = model.step(state, tokens)
    assert widths == [1, 1, 1, 1]
    assert [layer.slots for layer in state.past] == [4] * len(model.decoder.layers)


def test_dropout_is_on_the_sum_of_word_and_position():
    """Dropout also drops the position."""
    model = Transformer(SIZE, SIZE, dim=32, dropout=0.5)
    inputs_seen = []
    model.encoder.register_forward_pre_hook(lambda _, inputs: inputs_seen.append(inputs[0]))
    model.train().remember(SOURCE, SOURCE != 0)
    zero = (inputs_seen[0] == 0).float().mean()
    assert 0.3 < zero < 0.7


def test_wrong_settings_are_refused(unchecked):
    with pytest.raises(
        ValueError, match="tie_embeddings='all' needs one vocabulary, but source_size 5"
    ):
        Transformer(5, 6, tie_embeddings="all")
    with pytest.raises(ValueError, match="tie_embeddings must be"):
        Transformer(5, 6, tie_embeddings="both")
    with pytest.raises(ValueError, match="positions must be"):
        Transformer(5, 6, positions="rotary")
    with pytest.raises(ValueError, match="norm must be"):
        Transformer(5, 6, norm="none")
    with pytest.raises(ValueError, match="dim 10 is not a multiple of heads 4"):
        Transformer(5, 6, dim=10, heads=4)
