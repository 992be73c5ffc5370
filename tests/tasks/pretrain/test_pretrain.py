"""BERT's pretraining as a task, and classifiers that start from it."""

from pathlib import Path

import pytest
import torch
from torch import Generator

from regard.data.build import build_corpus
from regard.layers.lora import add_lora
from regard.models.catalogue import build_model
from regard.run import Run
from regard.tasks.base import BatchOptions
from regard.tasks.load import resolve_settings
from regard.tasks.pretrain.task import PretrainTask
from regard.text.special import END, START
from regard.text.train import train_tokenizer
from regard.training.trainer import Trainer
from regard.view.terminal import Surface

STORIES = [
    "the cat sat. it saw a mouse. the mouse ran.",
    "a dog ran. it sat on a log. the dog saw a cat.",
    "one fine day. the sun rose. the day was fine.",
]
SMALL = {"dim": 16, "heads": 2, "layers": 2, "max_positions": 40, "dropout": 0.0}


def quiet(_: str) -> None:
    pass


def settings(folder: Path, **more):
    (folder / "text.txt").write_text("\n\n".join(STORIES * 4))
    return resolve_settings(
        {
            "task": "pretrain",
            "data": {"kind": "text", "train": str(folder / "text.txt"), "unit": "paragraph"}
            | {name: str(folder / "text.txt") for name in ("dev", "test")},
            "text": {"kind": "wordpiece", "size": 60, "lower": True},
            "model": {"kind": "bert", **SMALL, "pretrain": "both"},
            "train": {
                "steps": 12,
                "examples_per_batch": 8,
                "learning_rate": 0.005,
                "max_tokens": 20,
                "save_every": 5,
                "validate_every": 6,
            },
            **more,
        }
    )


@pytest.fixture
def task() -> PretrainTask:
    text = train_tokenizer("wordpiece", STORIES, 60)
    model = build_model("bert", {**SMALL, "pretrain": "both", "size": text.size + 1})
    return PretrainTask(model, text, max_tokens=12)


def test_pairs(task):
    pairs = list(task.examples([{"text": story} for story in STORIES]))
    batch = task.collate(pairs)
    for pair, ids, valid, segments in zip(
        pairs, batch.ids, batch.valid, batch.segments, strict=True
    ):
        row = list(pair.source)
        assert row[0] == START
        assert row[-1] == END
        assert row.count(END) == 2
        assert len(row) <= 12 + 3
        assert ids[valid].tolist() == row
        first = row.index(END) + 1
        assert segments[valid].tolist() == [0] * first + [1] * (len(row) - first)


def test_the_loss_is_of_the_hidden_words_only(task):
    """Against a loop over the places where something was hidden."""
    batch = task.collate(list(task.examples([{"text": story} for story in STORIES])))
    model = task.model.eval()
    told = task.batch_losses(batch, Generator().manual_seed(3))
    seen = {}
    real = model.encode

    def listen(ids, valid, segments):
        seen["ids"] = ids
        return real(ids, valid, segments)

    model.encode = listen
    again = task.batch_losses(batch, Generator().manual_seed(3))
    assert again.words_loss.item() == told.words_loss.item()
    changed = seen["ids"] != batch.ids
    assert 0 < changed.sum() <= told.words  # a tenth stays as it is, and has to be told, too
    assert not changed[~batch.valid].any()
    assert not changed[(batch.ids == START) | (batch.ids == END)].any()
    found = real(seen["ids"], batch.valid, batch.segments)
    log_probs = model.logits(model.masked_word_states(found.states)).log_softmax(-1)
    true = -log_probs.gather(-1, batch.ids[..., None])[..., 0]
    assert true[changed].sum() <= told.words_loss + 1e-4
    pairs = model.following(found.pooled).log_softmax(-1)
    loss = -pairs[torch.arange(len(pairs)), batch.next_sentence_labels].sum()
    assert told.pairs_loss.item() == pytest.approx(loss.item(), rel=1e-5)


def test_it_learns_goes_on_and_fills_in(tmp_path):
    wanted = settings(tmp_path)
    for folder, stops in (("whole", [12]), ("parts", [4, 12])):
        for steps in stops:
            train = wanted.train.model_copy(update={"steps": steps})
            now = wanted.model_copy(update={"train": train})
            list(Trainer(now, tmp_path / folder, quiet))
    one, other = (Run.load(tmp_path / folder) for folder in ("whole", "parts"))
    for name, weight in one.model.state_dict().items():
        assert torch.equal(weight, other.model.state_dict()[name]), name
    scores = one.score("test")
    assert 0 < scores["accuracy"] <= 100
    assert 0 <= scores["next_sentence"] <= 100
    prediction = one("the [MASK] sat on a [MASK].")
    assert "[MASK]" not in prediction.text
    fields = prediction.as_dict()
    assert list(fields) == ["filled", "masks"]
    assert len(fields["masks"]) == 2
    assert sum(best["probability"] for best in fields["masks"][0]) <= 1
    with pytest.raises(ValueError, match=r"text 2: there is no \[MASK\] in it to fill in"):
        one.predict(["the [MASK]", "nothing hidden"])


def test_pairs_of_training_depend_on_the_seed_and_those_of_evaluation_do_not(tmp_path):
    corpus = build_corpus(settings(tmp_path).data)
    runs = [Run.create(settings(tmp_path, seed=seed), corpus) for seed in (1, 2)]
    first, second = ([*run.task.examples(corpus.read("dev"))] for run in runs)
    assert first == second
    first, second = (
        sorted(
            tuple(example.source)
            for example in run.task.batches(corpus, options(seed)).examples.examples
        )
        for seed, run in enumerate(runs, 1)
    )
    assert first != second


def options(seed: int) -> BatchOptions:
    return BatchOptions(None, 8, seed)


def test_attention_with_and_without_a_mask(task):
    for text in ("the [MASK] sat", "the cat sat"):
        attention = task.attention_map({"text": text})
        assert len(attention.layers) == 2
        assert attention.queries.tokens == attention.keys.tokens
        assert ("[MASK]" in attention.keys.tokens) == ("[MASK]" in text)
        rows = attention.layers[-1].weights.sum(-1)
        assert torch.as_tensor(rows).allclose(torch.ones(rows.shape), atol=1e-5)
        rendered = task.render({"text": text}, Surface())
        assert rendered.startswith(f"{text}\n\n")
        assert "weight: " in rendered
    assert task.exportable_model() is task.model


def test_words_whose_pieces_are_masked_together(tmp_path):
    run = Run.create(
        settings(tmp_path, mask={"whole_words": True}), build_corpus(settings(tmp_path).data)
    )
    assert run.task.word_starts is not None
    assert run.task.negative_log_likelihood(run.read_split("dev")).count > 0


def classifier(folder: Path, **start):
    rows = [("the cat sat", "cat"), ("a dog ran", "dog"), ("the dog", "dog"), ("a cat", "cat")]
    (folder / "train.tsv").write_text("".join(f"{text}\t{label}\n" for text, label in rows * 4))
    files = dict.fromkeys(("train", "dev", "test"), str(folder / "train.tsv"))
    return resolve_settings(
        {
            "task": "classify",
            "data": {"kind": "labeled", **files},
            "start": {"run": str(folder / "base"), **start},
            "head": {"dropout": 0.0},
            "train": {"steps": 15, "examples_per_batch": 8, "learning_rate": 0.02},
        }
    )


@pytest.fixture
def base(tmp_path) -> Path:
    wanted = settings(tmp_path)
    train = wanted.train.model_copy(update={"steps": 2})
    list(Trainer(wanted.model_copy(update={"train": train}), tmp_path / "base", quiet))
    return tmp_path / "base"


def encoder_of(run) -> dict[str, torch.Tensor]:
    return {name: w.clone() for name, w in run.task.model.encoder.state_dict().items()}


def test_a_classifier_starts_from_it(tmp_path, base):
    fit = Trainer(classifier(tmp_path), tmp_path / "run", quiet)
    before = Run.load(base).model.state_dict()
    for name, weight in encoder_of(fit.run).items():
        assert torch.equal(weight, before[name]), name
    list(fit)
    run = Run.load(tmp_path / "run")
    assert run.score("test")["accuracy"] == 100.0
    Trainer(classifier(tmp_path), tmp_path / "run", quiet)  # the same settings again: no other run
    base.rename(tmp_path / "gone")
    assert Run.load(tmp_path / "run")("a cat").text == "cat"  # it needs nothing else


@pytest.mark.parametrize("start", [{"freeze": True}, {"lora_rank": 2}])
def test_what_rests_stays_as_it_is(tmp_path, base, start):
    fit = Trainer(classifier(tmp_path, **start), tmp_path / "run", quiet)
    before = encoder_of(fit.run)
    list(fit)
    run = Run.load(tmp_path / "run")
    moved = {name for name, w in encoder_of(run).items() if not torch.equal(w, before[name])}
    assert all("parametrizations.weight.0" in name for name in moved)
    assert bool(moved) == ("lora_rank" in start)


def test_lower_layers_learn_more_slowly(tmp_path, base):
    fit = Trainer(classifier(tmp_path, layer_decay=0.5), tmp_path / "run", quiet)
    rates = fit.training.base_rates
    assert rates == pytest.approx([0.02 * 0.5**n for n in range(4)])  # head, two layers, words
    count = sum(len(group["params"]) for group in fit.training.optimizer.param_groups)
    assert count == len(list(fit.run.model.parameters()))
    list(fit)


def test_what_cannot_be_started_from(tmp_path, base):
    with pytest.raises(ValueError, match=r"nowhere: is not a run, there is no config.toml"):
        Trainer(classifier(tmp_path, run=str(tmp_path / "nowhere")), tmp_path / "run", quiet)
    (base / "text.json").unlink()
    with pytest.raises(ValueError, match=r"there is no text.json in it"):
        Trainer(classifier(tmp_path), tmp_path / "run", quiet)


def test_lora_begins_with_no_change():
    model = build_model("bert", {**SMALL, "size": 30}).eval()
    ids = torch.randint(4, 30, (2, 7))
    valid = torch.ones_like(ids, dtype=torch.bool)
    before = model.encode(ids, valid).states
    assert add_lora(model, 3) == 4
    assert torch.allclose(model.encode(ids, valid).states, before)
    for name, weight in model.named_parameters():
        assert weight.requires_grad == (name.endswith((".0.a", ".0.b"))), name
        if name.endswith(".0.b"):
            torch.nn.init.normal_(weight)
    assert not torch.allclose(model.encode(ids, valid).states, before)
    with pytest.raises(ValueError, match="Linear has no multi-head attention"):
        add_lora(torch.nn.Linear(2, 2), 1)
