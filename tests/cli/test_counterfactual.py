"""What if attention were elsewhere."""

import pytest
import torch

from regard.attention.observe import intervene, observe
from regard.cli.look import look
from regard.data.build import build_corpus
from regard.explain.counterfactual import mark_differences, parse_heads, render_counterfactual
from regard.run import Run
from regard.tasks.load import resolve_settings
from regard.tasks.translate.view import pin_attention
from regard.text.train import train_tokenizer
from regard.training.trainer import Trainer


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Taught to copy words into another language, one by one: it must look to know."""
    settings = {
        "task": "translate",
        "data": {"kind": "reorder", "size": 400, "held_out": 8, "vocabulary_size": 6},
        "text": {"kind": "words"},
        "model": {"kind": "luong", "dim": 24, "layers": 1, "init": "scaled", "score": "dot"},
        "train": {"steps": 200, "examples_per_batch": 32, "learning_rate": 0.01},
        "decode": {"kind": "greedy", "max_length": 12},
    }
    fit = Trainer(
        resolve_settings(settings), tmp_path_factory.mktemp("run") / "run", lambda _: None
    )
    list(fit)
    return fit.run


def text_of(run) -> str:
    return next(run.corpus().read("test"))["source"]


def test_without_attention_it_says_something_else(run):
    said = render_counterfactual(run, text_of(run), ["attention"], [])
    assert "[" in said
    assert run(text_of(run)).text.split()[0] in said


def test_a_word_is_forced(run):
    """Made to look elsewhere for its first word, it writes another, by where it looks."""
    record = next(run.corpus().read("test"))
    read, output = record["source"].split(), run(record["source"]).text.split()
    first = output[0]
    first_words = []
    for other in dict.fromkeys(read[:3]):
        said = render_counterfactual(run, record["source"], [], [f"{first}->{other}"])
        as_it_is, then = (line.split(":")[1].split() for line in said.splitlines())
        assert [word.strip("[]") for word in as_it_is] == output
        first_words.append(then[0].strip("[]"))
    assert first not in first_words
    assert len(set(first_words)) == len(first_words)


@pytest.mark.parametrize("search", ["greedy", "beam"])
@pytest.mark.parametrize("kind", ["rnnsearch", "luong", "transformer", "rnmt", "lstmn_fusion"])
def test_every_model_attends_where_it_must(kind, search):
    words = train_tokenizer("words", ["a b c d e f"], 12)
    settings = {
        "task": "translate",
        "model": {"kind": kind, "dim": 8},
        "decode": {"kind": search, "min_length": 3, "max_length": 4},
    }
    model = Run(resolve_settings(settings), {"source": words, "target": words})
    record = {"source": "a b c d"}
    first = model(record).text.split()[0]
    edits = model.task.forced_attention(record, [f"{first}->c"])
    assert set(edits) == set(model.task.attention_names())
    with observe(model.model) as recorded, intervene(model.model, edits):
        model(record)
    for name in edits:
        weights = recorded[name][0]  # of the first step
        assert torch.equal(weights[..., 2], torch.ones_like(weights[..., 2])), name


def test_nothing_is_left_behind(run):
    before = run(text_of(run)).text
    render_counterfactual(run, text_of(run), ["attention"], [])
    assert run(text_of(run)).text == before


@pytest.mark.parametrize(
    ("gone", "forced", "told"),
    [
        (["atention"], [], "did you mean 'attention'"),
        (["attention:2"], [], "--ablate attention:2: attention has no heads"),
        (["L2"], [], "--ablate L2: there are layers from L1 to L1"),
        (["L1.H2"], [], "--ablate L1.H2: attention has no heads"),
        ([], ["x"], "write it as WRITTEN->READ"),
        ([], ["zzz->zzz"], "there is no word 'zzz' in the text"),
    ],
)
def test_wrong_wishes_are_told(run, gone, forced, told):
    with pytest.raises(ValueError, match=told):
        render_counterfactual(run, text_of(run), gone, forced)


def test_heads_by_name(run):
    assert parse_heads(run, ["attention"]) == parse_heads(run, ["L1"]) == [("attention", 0)]


def test_heads_by_layer():
    size = {"dim": 8, "heads": 2, "layers": 2, "hidden_dim": 8}
    settings = {
        "task": "translate",
        "data": {"kind": "reorder", "size": 20, "held_out": 4},
        "text": {"kind": "words"},
        "model": {"kind": "transformer", **size},
    }
    known = resolve_settings(settings)
    run = Run.create(known, build_corpus(known.data))
    assert parse_heads(run, ["L2.H1"]) == [("decoder.layers.1.cross_attention", 0)]


def test_all_weight_goes_to_the_place_at_its_step():
    edit, weights = pin_attention({1: [0, 2]}), torch.full((1, 2, 1, 4), 0.25)
    assert edit(weights).equal(weights)
    assert edit(weights)[0, 0, 0].tolist() == [0.5, 0.0, 0.5, 0.0]
    assert edit(weights).equal(weights)


def test_what_differs_is_in_brackets():
    assert mark_differences("a b c d", "a x c") == ("a [b] c [d]", "a [x] c")
    assert mark_differences("same", "same") == ("same", "same")


def test_from_the_command_line(run, tmp_path, capsys):
    run.save(tmp_path / "run")
    look(tmp_path / "run", text_of(run), ablate=["attention"])
    assert capsys.readouterr().out.startswith("original:")
