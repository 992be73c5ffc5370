"""BERT's pretraining as a task, and classifiers that start from it."""

from pathlib import Path
from shutil import copytree

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


def ignore(_: str) -> None:
    """Discard a line of the log."""


def build_settings(folder: Path, **tables):
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
            **tables,
        }
    )


@pytest.fixture
def task() -> PretrainTask:
    text = train_tokenizer("wordpiece", STORIES, 60)
    model = build_model("bert", {**SMALL, "pretrain": "both", "size": text.size + 1})
    return PretrainTask(model, text, max_tokens=12)


def test_examples_are_two_spans_with_their_segments(task):
    examples = list(task.examples([{"text": story} for story in STORIES]))
    batch = task.collate(examples)
    for example, ids, valid, segments in zip(
        examples, batch.ids, batch.valid, batch.segments, strict=True
    ):
        row = list(example.ids)
        assert row[0] == START
        assert row[-1] == END
        assert row.count(END) == 2
        assert len(row) <= 12 + 3
        assert ids[valid].tolist() == row
        first = row.index(END) + 1
        assert segments[valid].tolist() == [0] * first + [1] * (len(row) - first)


def test_loss_is_that_of_the_masked_words(task):
    batch = task.collate(list(task.examples([{"text": story} for story in STORIES])))
    model = task.model.eval()
    losses = task.batch_losses(batch, Generator().manual_seed(3))
    masked_ids, encode = [], model.encode

    def recording_encode(ids, valid, segments):
        masked_ids.append(ids)
        return encode(ids, valid, segments)

    model.encode = recording_encode
    repeated = task.batch_losses(batch, Generator().manual_seed(3))
    assert repeated.words_loss.item() == losses.words_loss.item()
    changed = masked_ids[0] != batch.ids
    assert 0 < changed.sum() <= losses.words  # a tenth of the targets is unchanged
    assert not changed[~batch.valid].any()
    assert not changed[(batch.ids == START) | (batch.ids == END)].any()
    encoded = encode(masked_ids[0], batch.valid, batch.segments)
    log_probs = model.logits(model.masked_word_states(encoded.states)).log_softmax(-1)
    word_losses = -log_probs.gather(-1, batch.ids[..., None])[..., 0]
    assert word_losses[changed].sum() <= losses.words_loss + 1e-4
    pair_log_probs = model.following(encoded.pooled).log_softmax(-1)
    rows = torch.arange(len(pair_log_probs))
    pairs_loss = -pair_log_probs[rows, batch.next_sentence_labels].sum()
    assert losses.pairs_loss.item() == pytest.approx(pairs_loss.item(), rel=1e-5)


def train_run(folder: Path, name: str, steps: int) -> Path:
    """Train, or continue to train, the run `name` up to `steps` steps."""
    settings = build_settings(folder)
    train = settings.train.model_copy(update={"steps": steps, "keep_finished": True})
    list(Trainer(settings.model_copy(update={"train": train}), folder / name, ignore))
    return folder / name


@pytest.fixture(scope="module")
def pretrained(tmp_path_factory) -> Path:
    """Return the folder of a trained run of BERT, which no test may change."""
    return train_run(tmp_path_factory.mktemp("bert"), "run", 12)


def test_a_resumed_training_ends_with_the_same_weights(tmp_path, pretrained):
    train_run(tmp_path, "resumed", 4)
    weights = Run.load(pretrained).model.state_dict()
    resumed = Run.load(train_run(tmp_path, "resumed", 12)).model.state_dict()
    for name, weight in weights.items():
        assert torch.equal(weight, resumed[name]), name


def test_a_trained_run_fills_in_masks(pretrained):
    run = Run.load(pretrained)
    scores = run.score("test")
    assert 0 < scores["accuracy"] <= 100
    assert 0 <= scores["next_sentence"] <= 100
    prediction = run("the [MASK] sat on a [MASK].")
    assert "[MASK]" not in prediction.text
    fields = prediction.as_dict()
    assert list(fields) == ["filled", "masks"]
    assert len(fields["masks"]) == 2
    assert sum(best["probability"] for best in fields["masks"][0]) <= 1
    with pytest.raises(ValueError, match=r"text 2: there is no \[MASK\]; put one where"):
        run.predict(["the [MASK]", "no mask"])


def test_pairs_of_training_depend_on_the_seed_and_those_of_evaluation_do_not(tmp_path):
    corpus = build_corpus(build_settings(tmp_path).data)
    runs = [Run.create(build_settings(tmp_path, seed=seed), corpus) for seed in (1, 2)]
    first, second = ([*run.task.examples(corpus.read("dev"))] for run in runs)
    assert first == second
    first, second = (
        sorted(
            tuple(example.ids)
            for example in run.task.batches(corpus, BatchOptions(None, 8, seed)).examples.examples
        )
        for seed, run in enumerate(runs, 1)
    )
    assert first != second


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


def test_pieces_of_a_word_are_masked_together(tmp_path):
    settings = build_settings(tmp_path, mask={"whole_words": True})
    run = Run.create(settings, build_corpus(settings.data))
    assert run.task.word_starts is not None
    assert run.task.negative_log_likelihood(run.read_split("dev")).count > 0


def classifier_settings(folder: Path, **start):
    """Return settings of a classifier that starts from the run `folder`/base."""
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
def base(tmp_path, pretrained) -> Path:
    """Return a copy of the trained run, which a test may change."""
    return copytree(pretrained, tmp_path / "base")


def encoder_weights(run) -> dict[str, torch.Tensor]:
    return {name: w.clone() for name, w in run.task.model.encoder.state_dict().items()}


def test_a_classifier_starts_from_a_pretrained_run(tmp_path, base):
    trainer = Trainer(classifier_settings(tmp_path), tmp_path / "run", ignore)
    before = Run.load(base).model.state_dict()
    for name, weight in encoder_weights(trainer.run).items():
        assert torch.equal(weight, before[name]), name
    list(trainer)
    run = Run.load(tmp_path / "run")
    assert run.score("test")["accuracy"] == 100.0
    Trainer(classifier_settings(tmp_path), tmp_path / "run", ignore)  # the settings are unchanged
    base.rename(tmp_path / "gone")
    assert Run.load(tmp_path / "run")("a cat").text == "cat"  # without the pretrained run


@pytest.mark.parametrize("start", [{"freeze": True}, {"lora_rank": 2}])
def test_frozen_weights_do_not_change(tmp_path, base, start):
    trainer = Trainer(classifier_settings(tmp_path, **start), tmp_path / "run", ignore)
    before = encoder_weights(trainer.run)
    list(trainer)
    after = encoder_weights(Run.load(tmp_path / "run"))
    changed = {name for name, weight in after.items() if not torch.equal(weight, before[name])}
    assert all("parametrizations.weight.0" in name for name in changed)
    assert bool(changed) == ("lora_rank" in start)


def test_lower_layers_have_lower_learning_rates(tmp_path, base):
    settings = classifier_settings(tmp_path, layer_decay=0.5)
    trainer = Trainer(settings, tmp_path / "run", ignore)
    rates = trainer.training.base_rates
    # the head, two layers and the embedding
    assert rates == pytest.approx([0.02 * 0.5**n for n in range(4)])
    count = sum(len(group["params"]) for group in trainer.training.optimizer.param_groups)
    assert count == len(list(trainer.run.model.parameters()))
    list(trainer)


def test_missing_pretrained_runs_raise_an_error(tmp_path, base):
    settings = classifier_settings(tmp_path, run=str(tmp_path / "nowhere"))
    with pytest.raises(ValueError, match=r"nowhere: is not a run, there is no config.toml"):
        Trainer(settings, tmp_path / "run", ignore)
    (base / "text.json").unlink()
    with pytest.raises(ValueError, match=r"the run has no text.json; restore this file"):
        Trainer(classifier_settings(tmp_path), tmp_path / "run", ignore)


def test_lora_does_not_change_the_model_at_first():
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
