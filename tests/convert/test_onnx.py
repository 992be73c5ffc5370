"""ONNX graphs compute what the models compute."""

import logging

import numpy as np
import pytest
import torch

import regard
from regard.convert.onnx_folder import random_cache, write_graphs
from regard.convert.onnx_graphs import BertGraph, TransformerDecoderGraph, TransformerEncoderGraph
from regard.data.build import build_corpus
from regard.errors import InputError
from regard.models.bert import Bert
from regard.models.gpt2 import Gpt2
from regard.models.transformer import Transformer
from regard.tasks.exportable import ExportableHead

SIZE = 40
IDS = torch.tensor([[5, 9, 4, 30], [7, 5, 6, 4]])
VALID = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]])


@torch.no_grad()
def test_a_bert_graph_is_the_model():
    model = Bert(SIZE, dim=16, heads=2, layers=2).eval()
    head = ExportableHead("sequence", torch.randn(3, 16), torch.randn(3), ("a", "b", "c"), 9)
    segments = torch.tensor([[0, 0, 1, 1], [0, 1, 0, 0]])
    states, pooled, logits = BertGraph(model, head)(IDS, VALID, segments)
    encoded = model.encode(IDS, VALID.bool(), segments)
    torch.testing.assert_close(states[VALID.bool()], encoded.states[VALID.bool()])
    torch.testing.assert_close(pooled, encoded.pooled)
    torch.testing.assert_close(logits, encoded.pooled @ head.weight.T + head.bias)


@pytest.mark.parametrize(
    "options",
    [{"norm": "pre"}, {"positions": "learned", "tie_embeddings": "all", "scale_embeddings": False}],
)
@torch.no_grad()
def test_transformer_graphs_are_the_model(options):
    model = Transformer(SIZE, SIZE, dim=16, heads=2, layers=2, **options).eval()
    expected = model.logits(model.teacher_forced(model.remember(IDS, VALID.bool()), IDS))
    memory = TransformerEncoderGraph(model)(IDS, VALID)
    decoder, past = (
        TransformerDecoderGraph(model),
        [random_cache(model.decoder, rows=2, slots=0)] * 2,
    )
    torch.testing.assert_close(decoder(IDS, VALID, *memory, *past)[0], expected)
    for position in range(IDS.shape[1]):
        logits, *past = decoder(IDS[:, position : position + 1], VALID, *memory, *past)
        torch.testing.assert_close(logits[:, 0], expected[:, position])


@torch.no_grad()
def test_onnxruntime_computes_a_gpt2(tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    pytest.importorskip("onnxscript", reason="onnxscript is not installed")
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    model = Gpt2(SIZE, dim=16, heads=2, layers=1, max_positions=16).eval()
    write_graphs(tmp_path, model)
    session = onnxruntime.InferenceSession(str(tmp_path / "model.onnx"))
    expected = model.logits(model.teacher_forced(None, IDS)).numpy()
    past = [random_cache(model.decoder, rows=2, slots=0).numpy()] * 2
    for start, end in ((0, 2), (2, 3), (3, 4)):  # a prompt, then a token at a time
        ids = IDS[:, start:end].contiguous().numpy()
        inputs = {"ids": ids, "past_keys": past[0], "past_values": past[1]}
        logits, *past = session.run(None, inputs)
        np.testing.assert_allclose(logits, expected[:, start:end], atol=1e-4)


def test_other_models_have_no_graphs(tmp_path):
    raw = {"task": "translate", "data": {"kind": "reorder", "size": 20}}
    settings = regard.resolve_settings({**raw, "model": {"kind": "rnnsearch", "dim": 4}})
    run = regard.Run.create(settings, build_corpus(settings.data))
    with pytest.raises(InputError, match="export: cannot be exported to ONNX; the task translate"):
        regard.export_run(run, tmp_path / "graphs", to="onnx")
    assert not list(tmp_path.iterdir())
