"""CTranslate2 finds the outputs of regard's own search, or leaves them to it."""

import json

import numpy as np
import pytest
import torch

import regard
from regard.attention import zero
from regard.batching.example import Example, collate
from regard.config.decode import BeamConfig, GreedyConfig, SampleConfig
from regard.convert.run import check_export_format
from regard.data.build import build_corpus
from regard.decoding.beam import beam_search
from regard.decoding.constraints import Constraints
from regard.decoding.greedy import greedy_search
from regard.decoding.prompts import PromptStepper, prompt_state
from regard.engines.ctranslate2_model import (
    SpecialTokens,
    supported_model,
    write_ctranslate2_model,
)
from regard.engines.ctranslate2_search import (
    CTranslate2Generator,
    CTranslate2Layout,
    CTranslate2Translator,
    EngineSearch,
    engine_search,
)
from regard.errors import InputError
from regard.models.gpt2 import Gpt2
from regard.models.rnnsearch import RnnSearch
from regard.models.transformer import Transformer
from regard.tasks import engine_choice
from regard.tasks.engine_choice import check_engine_name
from regard.text.special import END, PAD, SPECIALS, START
from regard.text.special_ids import special_ids

ctranslate2 = pytest.importorskip("ctranslate2", reason="ctranslate2 is not installed")

SIZE, MAX_LENGTH = 1200, 20
TOKENS = [*SPECIALS, *(f"w{number}" for number in range(len(SPECIALS), SIZE))]
SPECIAL = SpecialTokens(*SPECIALS[1:])
MODELS = {
    "pre-norm": {"tie_embeddings": "all", "norm": "pre", "output_bias": True},
    "marian": {"activation": "swish", "positions": "halves", "tie_embeddings": "decoder"}
    | {"output_bias": True},
    "learned": {"positions": "learned", "decoder_layers": 1, "scale_embeddings": False}
    | {"max_positions": 32},
}
END_BIASES = {"pre-norm": 4.5, "marian": 5.0, "learned": 1.0}
SEARCHES = [
    EngineSearch(),
    EngineSearch(4, 4),
    EngineSearch(4, 4, 1.0, "length"),
    EngineSearch(4, 1, 1.0, "gnmt"),
]


@pytest.fixture(autouse=True)
def _cache(tmp_path, monkeypatch):
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


@torch.no_grad()
def small_transformer(name):
    """A model whose outputs have different lengths, and neither PAD nor START."""
    torch.manual_seed(0)
    model = Transformer(SIZE, SIZE, dim=16, heads=2, layers=2, **MODELS[name]).eval()
    model.output.weight.mul_(1.5)
    model.output.bias[[PAD, START]] = -30
    model.output.bias[END] = END_BIASES[name]
    return model


@pytest.mark.parametrize("name", MODELS)
def test_translations_are_those_of_the_search(name, tmp_path):
    model = small_transformer(name)
    write_ctranslate2_model(tmp_path / "model", model, [TOKENS, TOKENS], SPECIAL)
    layout = CTranslate2Layout("Translator", tmp_path / "model", int8=False, threads=1)
    engine = CTranslate2Translator(layout, TOKENS, TOKENS, max_source=32, max_target=32)
    sources = [torch.randint(4, SIZE, (1 + n % 4,)).tolist() for n in range(12)]
    limits, lengths = [MAX_LENGTH + n % 3 for n in range(12)], list[int]()
    for search in SEARCHES:
        results = engine.search(sources, limits, search)
        expected = search_together(model, sources, limits, search)
        for outputs, others in zip(results, expected, strict=True):
            if outputs is None:  # too long for CTranslate2: an output reaches the limit
                continue
            lengths += [len(output.ids) for output in outputs]
            assert [output.ids for output in outputs] == [other.ids for other in others]
            for output, other in zip(outputs, others, strict=True):
                assert output[1:] == pytest.approx(other[1:], abs=1e-4)
    assert len(lengths) > 20
    assert max(lengths) > 1


@torch.inference_mode()
def search_together(model, sources, limits, search):
    batch = collate([Example(n, ids, []) for n, ids in enumerate(sources)])
    memory, constraints = model.remember(batch.source, batch.source_valid), Constraints(limits)
    if search.width == 1:
        return greedy_search(model, memory, len(sources), constraints)
    return beam_search(
        *(model, memory, len(sources), search.width),
        n_best=search.n_best,
        alpha=search.alpha,
        normalization=search.normalization,
        constraints=constraints,
    )


def test_long_texts_and_limits_are_left_to_the_search(tmp_path):
    model = small_transformer("learned")
    write_ctranslate2_model(tmp_path / "model", model, [TOKENS, TOKENS], SPECIAL)
    layout = CTranslate2Layout("Translator", tmp_path / "model", int8=False, threads=1)
    engine = CTranslate2Translator(layout, TOKENS, TOKENS, max_source=32, max_target=32)
    assert engine.search([[5] * 32, [5]], [4, 32], EngineSearch()) == [None, None]
    model.output.bias[END].data.fill_(-30)  # every output reaches the limit
    write_ctranslate2_model(tmp_path / "endless", model, [TOKENS, TOKENS], SPECIAL)
    layout = CTranslate2Layout("Translator", tmp_path / "endless", int8=False, threads=1)
    engine = CTranslate2Translator(layout, TOKENS, TOKENS, max_source=32, max_target=32)
    assert engine.search([[5, 6]], [8], EngineSearch()) == [None]
    assert engine.search([[5, 6]], [8], EngineSearch(3)) == [None]


def test_continuations_are_those_of_the_search(tmp_path):
    model = Gpt2(SIZE, dim=16, heads=2, layers=2, max_positions=24).eval()
    for weight in model.parameters():
        weight.data.mul_(6.0 if weight.ndim > 1 else 1.0)
    write_ctranslate2_model(tmp_path / "model", model, [TOKENS], SPECIAL)
    layout = CTranslate2Layout("Generator", tmp_path / "model", int8=False, threads=1)
    prompts = [torch.randint(4, SIZE, (1 + n % 5,)).tolist() for n in range(8)] + [[5] * 16]
    engine = CTranslate2Generator(layout, TOKENS, end=END, max_positions=24)
    *outputs, too_long = engine.search(prompts, 8)
    assert too_long is None
    for prompt, output in zip(prompts, outputs, strict=False):
        expected = greedy(model, prompt)
        assert output.ids == expected.ids
        assert output.log_prob == pytest.approx(expected.log_prob, abs=1e-4)
    # An id that an output contains becomes the end, so that it ends before the limit.
    ids = outputs[0].ids
    engine = CTranslate2Generator(layout, TOKENS, end=ids[3], max_positions=24)
    [shorter] = engine.search(prompts[:1], 8)
    assert shorter.ids == ids[: ids.index(ids[3])]
    assert shorter.log_prob > outputs[0].log_prob


@torch.inference_mode()
def greedy(model, prompt):
    stepper = PromptStepper(model, float(model.max_positions))
    state = prompt_state(torch.tensor([prompt]))
    return greedy_search(stepper, state, 1, Constraints(8, forbidden=()))[0][0]


@pytest.mark.parametrize(
    ("decode", "reason"),
    [
        (SampleConfig(), "decode.kind = 'sample'"),
        (GreedyConfig(min_length=2), "decode.min_length = 2"),
        (BeamConfig(no_repeat_ngram=3), "decode.no_repeat_ngram = 3"),
        (BeamConfig(patience=2), "decode.patience = 2"),
        (BeamConfig(coverage_penalty=0.2), "decode.coverage_penalty = 0.2"),
        (BeamConfig(n_best=2, length_penalty=1), "decode.n_best = 2 with"),
    ],
)
def test_unsupported_searches_are_named(decode, reason):
    assert reason in engine_search(decode, SIZE)
    assert isinstance(engine_search(BeamConfig(n_best=2), SIZE), EngineSearch)
    assert "a vocabulary of 20 tokens" in engine_search(BeamConfig(), 20)


def new_run(task, data, model):
    """Return an untrained run."""
    settings = regard.resolve_settings({"task": task, "data": data, "model": model})
    return regard.Run.create(settings, build_corpus(settings.data))


@pytest.fixture(scope="module")
def translator(tmp_path_factory):
    """A run of a small transformer whose outputs end."""
    folder = tmp_path_factory.mktemp("runs") / "translator"
    model = {"kind": "transformer", "dim": 16, "heads": 2, "layers": 1}
    run = new_run("translate", {"kind": "reorder", "size": 20}, model)
    run.model.out.bias.data[[PAD, START, END]] = torch.tensor([-30.0, -30.0, 0.5])
    run.save(folder)
    return folder


GREEDY = ["decode={kind='greedy'}"]


def test_a_run_predicts_by_the_engine(translator, monkeypatch):
    run = regard.load(translator).override(GREEDY)
    texts = ["a b", "b", "a a a b", ""]
    expected = [prediction.best for prediction in run.predict(texts)]
    assert run.use_engine("ctranslate2").engine == "ctranslate2"
    calls = []
    search = CTranslate2Translator.search
    monkeypatch.setattr(
        CTranslate2Translator,
        "search",
        lambda *arguments: calls.append(len(arguments[1])) or search(*arguments),
    )
    for prediction, other in zip(run.predict(texts), expected, strict=True):
        assert prediction.text == other.text
        assert prediction.best.log_prob == pytest.approx(other.log_prob, abs=1e-4)
    assert calls == [4]
    names = list(run.attention("a b").layers)  # attention comes from the plain path
    assert names
    with regard.intervene(run.model, {run.task.attention_names()[0]: zero()}):
        run("a b")
    texts = list[str]()
    run.task.stream({"source": "a b"}, texts.append)
    assert texts
    run.model.source_words.weight.data.mul_(1.0)  # changed weights are never ignored
    run.model.source_words.weight.detach().mul_(1.0)
    run("a b")
    assert calls == [4]


@pytest.mark.parametrize(
    ("has_dot_instructions", "int8", "expected"),
    [
        (False, False, "ctranslate2"),
        (False, True, "ctranslate2"),
        (True, False, "built-in"),
        (True, True, "ctranslate2"),
    ],
)
def test_auto_is_the_faster_engine(translator, monkeypatch, has_dot_instructions, int8, expected):
    monkeypatch.setattr(engine_choice, "has_dot_instructions", lambda: has_dot_instructions)
    run = regard.load(translator).override(GREEDY)
    run = (run.quantize() if int8 else run).use_engine("auto")
    assert run.engine == expected
    if expected == "ctranslate2":
        run("a b")
        assert not run.task.engine.layout.models  # one text is left to regard's own search
        run.predict(["a b", "b"])
        assert run.task.engine.layout.models


def test_a_run_says_why_it_has_no_engine(translator, monkeypatch):
    monkeypatch.setattr(engine_choice, "has_dot_instructions", lambda: False)
    run = regard.load(translator)
    with pytest.raises(InputError, match=r"engine: CTranslate2 cannot .* decode.width = 5 with a"):
        run.use_engine("ctranslate2")
    assert run.use_engine("auto").engine == "built-in"
    assert run.override(GREEDY).engine == "ctranslate2"  # the choice stays
    with pytest.raises(InputError, match="engine: unknown name 'fast'"):
        check_engine_name("fast")


def test_eight_bits_are_those_of_the_engine(translator):
    run = regard.load(translator).override(GREEDY).use_engine("ctranslate2").quantize()
    run("a b")
    [model] = run.task.engine.layout.models.values()
    assert model.compute_type.startswith("int8")
    assert run.override(["decode.max_length=9"]).task.engine.layout.int8


def test_a_model_is_converted_once(translator, tmp_path):
    for _ in range(2):
        regard.load(translator).override(GREEDY).use_engine("ctranslate2")
    [folder] = (tmp_path / "cache" / "ctranslate2").iterdir()
    config = json.loads((folder / "config.json").read_text())
    assert config["decoder_start_token"] == SPECIALS[START]


def test_eight_bits_are_exported(translator, tmp_path):
    run = regard.load(translator)
    for name, int8 in (("full", False), ("int8", True)):
        regard.export_run(run, tmp_path / name, to="ctranslate2", int8=int8)
    full, small = ((tmp_path / name / "model.bin").stat().st_size for name in ("full", "int8"))
    assert small < full
    model = ctranslate2.Translator(str(tmp_path / "int8"))
    assert model.compute_type.startswith("int8")
    [answer] = model.translate_batch([run.vocabularies["source"].encode("a b").tokens])
    assert answer.hypotheses[0]
    with pytest.raises(InputError, match="--int8: onnx has no weights of 8 bits; use --to"):
        regard.export_run(run, tmp_path / "onnx", to="onnx", int8=True)
    assert not (tmp_path / "onnx").exists()


def test_a_bert_is_exported(tmp_path):
    model = {"kind": "bert", "dim": 16, "heads": 2, "layers": 2}
    run = new_run("classify", {"kind": "planted", "size": 20, "held_out": 2}, model)
    regard.export_run(run, tmp_path / "bert", to="ctranslate2")
    encoder = ctranslate2.Encoder(str(tmp_path / "bert"))
    tokenizer = run.vocabularies["text"]
    special = special_ids(tokenizer)
    ids = [special.start, *range(10, 14), special.end]
    states = np.array(encoder.forward_batch([ids]).last_hidden_state)
    row = torch.tensor([ids])
    with torch.no_grad():
        expected = run.model.encoder.encode(row, torch.ones_like(row, dtype=torch.bool)).states
    np.testing.assert_allclose(states, expected.numpy(), atol=1e-4)
    with pytest.raises(InputError, match="bert: exists already"):
        regard.export_run(run, tmp_path / "bert", to="ctranslate2")


def test_other_models_are_refused():
    with pytest.raises(InputError, match="model RnnSearch is not a transformer, gpt2 or bert"):
        supported_model(RnnSearch(20, 20, dim=4, hidden_dim=4))
    with pytest.raises(InputError, match="is not a softmax over scaled dot products"):
        supported_model(Transformer(20, 20, dim=4, heads=2, layers=1, normalize="sparsemax"))
    run = new_run("translate", {"kind": "reorder", "size": 20}, {"kind": "rnnsearch", "dim": 4})
    with pytest.raises(InputError, match="export: cannot be exported to CTranslate2; model Rnn"):
        regard.export_run(run, "model", to="ctranslate2")
    with pytest.raises(InputError, match=r"engine: CTranslate2 cannot .*; the run has no folder"):
        run.use_engine("ctranslate2")
    with pytest.raises(InputError, match="--to: unknown format 'xml'"):
        check_export_format("xml")
