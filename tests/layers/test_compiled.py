"""Attention, hooks and blocks under torch.compile, each as one graph.

One new process runs all checks: shape checks, which a compiler cannot trace, are off there, and
torch's compiler is imported once.
"""

import subprocess
import sys

SCRIPT = """
import torch
import torch.nn.functional as F
from torch import nn
from regard.attention.core import Attention
from regard.attention.masks import causal
from regard.attention.multihead import MultiHead
from regard.attention.observe import intervene, observe, zero
from regard.attention.scores import Additive, ScaledDot
from regard.layers.activations import tanh_gelu
from regard.layers.positions import RelativeBias, RotaryPositions
from regard.layers.transformer_block import TransformerBlock


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.own = MultiHead(Attention(ScaledDot()), 8, 2)
        self.aligned = Attention(Additive(8, 8, 4))

    def forward(self, x, valid):
        x = x + self.own(F.gelu(x), self.own.remember(x, valid), causal)
        return self.aligned(x, self.aligned.remember(x))


def check_fused_kernel():
    graphs = []

    def record(graph, example):
        graphs.append([str(node.target) for node in graph.graph.nodes])
        return graph.forward

    heads = MultiHead(Attention(ScaledDot()), 8, 2)
    x = torch.randn(2, 5, 8)
    torch.compile(lambda x: heads(x, heads.remember(x), causal), backend=record, fullgraph=True)(x)
    (nodes,) = graphs
    assert sum("scaled_dot_product_attention" in node for node in nodes) == 1, nodes
    assert not any("softmax" in node for node in nodes), nodes


def check_hooks():
    x, valid = torch.randn(2, 5, 8), torch.ones(2, 5, dtype=torch.bool)
    model = Model()
    compiled = torch.compile(model, fullgraph=True)
    before = compiled(x, valid)
    torch.testing.assert_close(before, model(x, valid))
    for _ in range(2):
        with observe(compiled) as recorded:
            assert torch.equal(compiled(x, valid), before)
        with observe(model) as expected:
            model(x, valid)
        assert list(recorded) == ["own", "aligned"] == list(expected)
        for name in recorded:
            torch.testing.assert_close(recorded[name], expected[name])
    with intervene(compiled, {"own": zero([0])}):
        edited = compiled(x, valid)
        torch.testing.assert_close(edited, model(x, valid))
        assert not torch.equal(edited, before)
    assert torch.equal(compiled(x, valid), before)


def check_block():
    positions = {"rotary": RotaryPositions(), "relative": RelativeBias(2, causal=True)}
    options = {"norm": "pre", "activation": tanh_gelu, "memory_dim": 7, "groups": 1}
    block = TransformerBlock(8, 2, 12, **options, **positions)
    memory, states = block.remember(torch.randn(3, 5, 7)), torch.randn(3, 6, 8)
    compiled = torch.compile(block, fullgraph=True, backend="aot_eager")
    actual, slots = compiled(states, None, causal, None, memory)
    torch.testing.assert_close(actual, block(states, None, causal, None, memory)[0])
    actual.sum().backward()


check_fused_kernel()
check_hooks()
check_block()
"""


def test_compiles_as_one_graph():
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
