"""Heads: where they look, what is lost without them, and runs that have fewer."""

import pytest
import torch

from regard.attention.observe import named_attentions
from regard.batching.example import Example, collate
from regard.data.build import build_corpus
from regard.explain.heads import (
    ablated_loss,
    ablated_metrics,
    alignment_error_rates,
    attention_patterns,
    head_counts,
    measure_heads,
    names_by_importance,
    pattern_features,
    prune_heads,
    separator_mask,
)
from regard.run import Run
from regard.tasks.load import resolve_settings
from regard.training.trainer import Trainer


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    settings = {
        "task": "translate",
        "data": {"kind": "reorder", "size": 60, "held_out": 8, "vocabulary_size": 6},
        "text": {"kind": "words"},
        "model": {"kind": "transformer", "dim": 8, "heads": 2, "layers": 1, "hidden_dim": 8},
        "train": {"steps": 20, "examples_per_batch": 8, "learning_rate": 0.01},
        "decode": {"kind": "greedy", "max_length": 6},
    }
    fit = Trainer(resolve_settings(settings), tmp_path_factory.mktemp("run"), lambda _: None)
    list(fit)
    return fit.run


@pytest.fixture
def records(run):
    return list(run.corpus().read("dev"))


def test_every_head_is_measured(run, records):
    found = measure_heads(run, records)
    assert [one.name for one in found] == [
        (name, head) for name in named_attentions(run.model) for head in (0, 1)
    ]
    assert set(head_counts(run).values()) == {2}
    whole = ablated_loss(run, records)
    for one in found:
        assert one.loss_increase == pytest.approx(
            ablated_loss(run, records, [one.name]) - whole, abs=1e-6
        )
    missed = [
        one.loss_increase
        for one in sorted(found, key=lambda one: names_by_importance(found).index(one.name))
    ]
    assert missed == sorted(missed)


def test_links_of_a_head_are_those_of_a_map(run, records):
    """The same by another way: from the weights of each pair, word by word."""
    found = alignment_error_rates(run, records)
    assert set(found) == {("decoder.layers.0.cross_attention", head) for head in (0, 1)}
    for (_, head), aer in found.items():
        right = total = 0
        for record in records:
            ids = run.task.target.encode_ids([record["target"]])[0]
            pair = Example(0, run.task.source.encode_ids([record["source"]])[0], ids)
            weights = run.task.attention_weights(collate([pair]))[0, 0, head, :-1, :-1]
            guessed = {(int(best), word) for word, best in enumerate(weights.argmax(-1))}
            true = {tuple(map(int, link.split("-"))) for link in record["links"].split()}
            right += len(guessed & true)
            total += len(guessed) + len(true)
        assert aer == pytest.approx(1 - 2 * right / total)


def test_taken_away_is_as_without(run, records, tmp_path):
    run.save(tmp_path / "whole")
    names = names_by_importance(measure_heads(run, records))[:3]
    wanted = ablated_loss(run, records, names)
    fewer = Run.load(tmp_path / "whole")
    prune_heads(fewer, names)
    fewer.save(tmp_path / "fewer")
    again = Run.load(tmp_path / "fewer")
    assert ablated_loss(again, records) == pytest.approx(wanted, abs=1e-5)
    assert ablated_loss(again, records) != pytest.approx(ablated_loss(run, records), abs=1e-5)


def test_where_a_head_looks_by_hand():
    ahead = torch.tensor([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.5, 0.0, 0.5]])
    rows = pattern_features(ahead[None, None], torch.tensor([0.0, 1.0, 1.0]))[0, 0].tolist()
    #                     previous same next first last separator distance entropy
    assert rows[0] == pytest.approx([0, 0, 1, 0, 0, 1, 1, 0], abs=1e-5)
    assert rows[1] == pytest.approx([0, 0, 1, 0, 1, 1, 1, 0], abs=1e-5)
    assert rows[2] == pytest.approx([0, 0.5, 0, 0.5, 0.5, 0.5, 1, 1], abs=1e-5)


def test_separators_are_of_the_row_that_is_as_long():
    source, target = torch.tensor([[5, 2, 6, 2]]), torch.tensor([[1, 5, 6]])
    assert separator_mask([source, target], 2, 4).tolist() == [0, 1, 0, 1]
    assert separator_mask([source, target], 2, 3).tolist() == [0, 0, 0]
    assert separator_mask([source, target], 2, 9).tolist() == [0] * 9  # slots of a memory
    assert separator_mask([source, torch.tensor([[1, 2, 3, 4]])], 2, 4).isnan().all()


def test_heads_that_look_at_separators(tmp_path):
    """A BERT for pairs whose heads look everywhere alike: two of seven tokens are marks."""
    (tmp_path / "pairs.tsv").write_text("a b\tc d\tyes\nb a\td c\tno\n")
    labeled = {"kind": "labeled", "columns": ["text", "pair", "label"]}
    settings = resolve_settings(
        {
            "task": "classify",
            "data": {**labeled, "train": str(tmp_path / "pairs.tsv")},
            "text": {"kind": "words"},
            "model": {"kind": "bert", "dim": 8, "heads": 2, "layers": 1, "hidden_dim": 8},
        }
    )
    run = Run.create(settings, build_corpus(settings.data))
    for weight in run.model.parameters():
        torch.nn.init.zeros_(weight)
    [[place, _]] = attention_patterns(run, list(run.corpus().read("train"))).values()
    assert place.separator == pytest.approx(2 / 7, abs=1e-6)
    assert place.last == pytest.approx(1 / 7, abs=1e-6)


def test_scores_without_a_head_are_those_of_a_run_that_has_it_not(run, records, tmp_path):
    name = ("decoder.layers.0.cross_attention", 1)
    before, after = ablated_metrics(run, records), ablated_metrics(run, records, [name])
    assert set(before) == set(after) > {"bleu", "aer"}
    run.save(tmp_path / "whole")
    fewer = Run.load(tmp_path / "whole")
    prune_heads(fewer, [name])
    again = ablated_metrics(fewer, records)
    for metric in set(again) - {"aer"}:  # taken away, a head says nothing, but still looks
        assert after[metric] == pytest.approx(again[metric], abs=1e-6)
    [one] = [one for one in measure_heads(run, records, with_metrics=True) if one.name == name]
    assert one.metric_changes["aer"] == pytest.approx(after["aer"] - before["aer"])
    assert run.score(records) == run.score(records)  # nothing stays away


def test_places_are_means_over_rows_that_are_there(run, records):
    one = attention_patterns(run, records[:1])
    two = attention_patterns(run, [records[0], records[0]])
    for name in one:
        for a, b in zip(one[name], two[name], strict=True):
            assert list(a) == pytest.approx(list(b), abs=1e-5)
    past = one["decoder.layers.0.self_attention"]
    assert all(place.next == 0 for place in past)  # what is to come is hidden


def test_heads_of_an_alignment_are_found_and_taken_away(tmp_path, unchecked):
    """Rows, columns and edges have heads, too, of every sequence and every start."""
    (tmp_path / "a.fa").write_text(
        ">a\nMKVLAAGDE\nMRVLA-GDE\nCHHHHHHCC\n>b\nGGTVEVEKL\nCCEEEEECC\n"
    )
    size = {"dim": 8, "pair_dim": 4, "heads": 3, "pair_heads": 2, "head_dim": 4, "layers": 1}
    data = {"kind": "proteins", "train": str(tmp_path / "a.fa"), "held_out": 0.0}
    settings = resolve_settings({"task": "fold", "data": data, "model": {"kind": "msa", **size}})
    run = Run.create(settings, build_corpus(settings.data))
    for weight in run.model.parameters():
        torch.nn.init.normal_(weight, std=0.4)
    records = list(run.corpus().read("train"))
    found = measure_heads(run, records)
    named = [
        f"{name.removeprefix('encoder.blocks.0.')}:{head}"
        for (name, head) in (one.name for one in found)
    ]
    assert named == [
        *(f"rows.look:{n}" for n in range(3)),
        *(f"columns.look:{n}" for n in range(3)),
        *(f"edges.{end}.look:{n}" for end in range(2) for n in range(2)),
    ]
    names = [("encoder.blocks.0.rows.look", 1), ("encoder.blocks.0.edges.1.look", 0)]
    edited = ablated_loss(run, records, names)
    assert edited != ablated_loss(run, records)
    prune_heads(run, names)
    assert ablated_loss(run, records) == pytest.approx(edited, rel=1e-5)
