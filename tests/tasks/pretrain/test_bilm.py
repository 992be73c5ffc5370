"""ELMo's pretraining as a task, and classifiers that start from it."""

from pathlib import Path

import pytest
import torch

from regard.models.catalogue import build_model
from regard.run import Run
from regard.tasks.encoder_inputs import CharacterInputs
from regard.tasks.load import resolve_settings
from regard.tasks.pretrain.bilm import BiLmTask
from regard.text.special import END, START, UNKNOWN
from regard.text.spelling import spell_sentence
from regard.text.train import train_tokenizer
from regard.training.trainer import Trainer

STORIES = ["the cat sat. it saw a mouse.", "a dog ran. it sat on a log.", "the dog saw a cat."]
SMALL = {"filters": ((1, 4), (2, 8)), "dim": 8, "hidden_dim": 12, "dropout": 0.0}
WORDS = train_tokenizer("words", STORIES, 50)
KEYS = ["perplexity", "forward", "backward", "words"]


def ignore(_: str) -> None:
    """Discard a line of the log."""


@pytest.fixture(scope="module")
def task() -> BiLmTask:
    torch.manual_seed(0)
    model = build_model("elmo", {**SMALL, "size": WORDS.size}).double()
    return BiLmTask(model, WORDS, max_tokens=20)


def test_long_sentences_are_cut(task):
    examples = list(task.sentence_parts([{"text": "the cat sat. a yak ran on and on."}], 4))
    assert [list(example.words) for example in examples] == [
        ["the", "cat", "sat."],
        ["a", "yak", "ran", "on"],
        ["and", "on."],
    ]
    assert examples[1].ids[1] == UNKNOWN
    batch = task.collate(examples)
    assert batch.ids[2].tolist() == [START, *examples[2].ids, END, 0, 0]
    characters = [list(word) for word in spell_sentence(["and", "on."])]
    assert batch.characters[2, :4].tolist() == characters
    assert batch.valid.sum(1).tolist() == [5, 6, 4]


def test_loss_of_both_directions(task):
    """Compare with a loop over single sentences and their words."""
    records = [{"text": story} for story in STORIES]
    examples = list(task.examples(records))
    forward_loss = backward_loss = 0.0
    for example in examples:
        batch = task.collate([example])
        _, forward, backward = task.model.eval().read(batch.characters, batch.valid)
        ids = batch.ids[0].tolist()
        for k, word in enumerate(ids):
            if k > 0:
                log_probs = task.model.logits(forward[-1][0, k - 1]).log_softmax(-1)
                forward_loss -= log_probs[word].item()
            if k < len(ids) - 1:
                log_probs = task.model.logits(backward[-1][0, k + 1]).log_softmax(-1)
                backward_loss -= log_probs[word].item()
    losses = task.batch_losses(task.collate(examples))
    words = sum(len(example.ids) + 1 for example in examples)
    assert losses.forward.item() == pytest.approx(forward_loss, rel=1e-9)
    assert losses.backward.item() == pytest.approx(backward_loss, rel=1e-9)
    assert losses.words == words
    metrics = task.score(records)
    perplexity = torch.tensor(forward_loss / words).exp().item()
    assert metrics["forward"] == pytest.approx(perplexity, rel=1e-5)
    assert metrics["words"] == words


def build_settings(folder: Path, **tables):
    (folder / "text.txt").write_text("\n\n".join(STORIES * 6))
    files = dict.fromkeys(("train", "dev", "test"), str(folder / "text.txt"))
    return resolve_settings(
        {
            "task": "pretrain",
            "data": {"kind": "text", **files, "unit": "paragraph"},
            "text": {"kind": "words", "size": 60},
            "model": {"kind": "elmo", **SMALL},
            "train": {"steps": 30, "examples_per_batch": 8, "learning_rate": 0.03},
            **tables,
        }
    )


@pytest.fixture(scope="module")
def pretrained(tmp_path_factory) -> Path:
    """Return the folder of a trained run of ELMo."""
    folder = tmp_path_factory.mktemp("elmo")
    list(Trainer(build_settings(folder), folder / "run", ignore))
    return folder / "run"


def test_a_trained_run_predicts_perplexities(pretrained):
    run = Run.load(pretrained)
    scores = run.score("test")
    assert 1 < scores["perplexity"] < 6
    assert scores["perplexity"] == pytest.approx((scores["forward"] * scores["backward"]) ** 0.5)
    likely, unlikely = run.predict(["the cat sat.", "sat. the dog"])
    assert float(likely.text) < float(unlikely.text)
    assert unlikely.as_dict()["words"] == 5  # two sentences, each with its end
    assert list(unlikely.as_dict()) == list(scores) == KEYS
    with pytest.raises(ValueError, match="line 1: there is no word in it"):
        run.predict([" "], location="line {}")
    with pytest.raises(ValueError, match="model Elmo has no attention to observe"):
        run.attention("the cat sat.")
    with pytest.raises(ValueError, match=r"train.metric = 'accuracy' is not known"):
        run.task.validation_metric("accuracy", run.read_split("test"))


@pytest.mark.parametrize("freeze", [True, False])
def test_a_classifier_starts_from_a_pretrained_run(tmp_path, pretrained, freeze):
    rows = [("the cat sat", "cat"), ("a dog ran", "dog"), ("the dog", "dog"), ("a cat", "cat")]
    (tmp_path / "train.tsv").write_text("".join(f"{text}\t{label}\n" for text, label in rows * 4))
    files = dict.fromkeys(("train", "dev", "test"), str(tmp_path / "train.tsv"))
    settings = resolve_settings(
        {
            "task": "classify",
            "data": {"kind": "labeled", **files},
            "start": {"run": str(pretrained), "freeze": freeze},
            "train": {"steps": 40, "examples_per_batch": 8, "learning_rate": 0.05},
            "seed": 0,  # with seed 1 and a frozen encoder, accuracy stays at 50 %
        }
    )
    trainer = Trainer(settings, tmp_path / "run", ignore)
    weights = Run.load(pretrained).model.state_dict()
    before = {name: w.clone() for name, w in trainer.run.task.model.encoder.state_dict().items()}
    assert set(weights) - set(before) == {"output.weight", "output.bias"}
    assert all(torch.equal(weight, weights[name]) for name, weight in before.items())
    list(trainer)
    run = Run.load(tmp_path / "run")
    assert run.score("test")["accuracy"] == 100.0
    after = run.task.model.encoder.state_dict()
    changed = {name for name, weight in after.items() if not torch.equal(weight, before[name])}
    assert {"mix.s", "mix.gamma"} <= changed
    assert (changed == {"mix.s", "mix.gamma"}) == freeze  # the mixture of layers is always trained
    prediction = run("a catt")
    assert prediction.text == "cat"  # an unknown word, by its characters


def test_character_inputs_of_words():
    inputs = CharacterInputs(WORDS)
    records = [{"text": "a b c d", "pair": "e f"}, {"text": "a", "pair": "b"}]
    assert inputs.rows(records, 4) == [["a", "b", "", "e", "f"], ["a", "", "b"]]
    assert inputs.rows([{"text": ""}], 4) == [[""]]
    tensors = inputs.tensors([["a", "b"], [""]])
    assert tensors["valid"].tolist() == [[True] * 4, [True, True, True, False]]
    assert not tensors["characters"][1, 3].any()


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ({"text": {"kind": "bpe"}}, "elmo' reads the characters of words: set text.kind = 'words'"),
        ({"mask": {"rate": 0.3}}, "mask has no effect: elmo masks no word"),
        ({"model": {"kind": "elmo", "dim": 8, "hidden_dim": 4}}, "hidden_dim = 4 must be"),
    ],
)
def test_bad_settings_raise_an_error(tmp_path, tables, message):
    with pytest.raises(ValueError, match=message):
        build_settings(tmp_path, **tables)
