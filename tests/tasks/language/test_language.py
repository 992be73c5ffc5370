"""Language modeling: streams, likelihood, continuations of prompts, and exact resuming."""

import math
from pathlib import Path

import pytest
import torch

from regard.batching.text_windows import all_windows
from regard.decoding.constraints import Constraints
from regard.errors import InputError
from regard.models.catalogue import build_model
from regard.run import Run
from regard.tasks.catalogue import model_kinds
from regard.tasks.generation import Decoding, build_search
from regard.tasks.language.task import LanguageTask
from regard.tasks.load import resolve_settings
from regard.tasks.text_stream import replace_tensors, state_tensors
from regard.text.special import END
from regard.text.train import train_tokenizer
from regard.training.trainer import Trainer

TEXT = "the cat sat on the mat. the dog sat on the log. "
KINDS = [*model_kinds("language")]
SMALL = {
    "gpt2": {"dim": 16, "heads": 2, "layers": 2, "max_positions": 24, "dropout": 0.0},
    "rnnlm": {"dim": 8, "hidden_dim": 12, "layers": 2},
    "lstmn": {"dim": 8, "hidden_dim": 12},
}


def decoding(kind: str, max_length: int = 10) -> Decoding:
    settings = resolve_settings({"task": "language", "decode": {"kind": kind}})
    return Decoding(build_search(settings.decode), Constraints(max_length))


def build_task(kind: str) -> LanguageTask:
    characters = train_tokenizer("characters", [TEXT], 100)
    model = build_model(kind, {**SMALL[kind], "size": characters.size})
    return LanguageTask(model, characters, decoding=decoding("greedy"), context_length=8)


@pytest.fixture(scope="module", params=KINDS)
def task(request) -> LanguageTask:
    torch.manual_seed(0)
    return build_task(request.param)


def test_texts_are_one_stream(task):
    ids = task.token_stream([{"text": "the"}, {"text": ""}, {"text": "cat"}])
    the, cat = task.text.encode_ids(["the", "cat"])
    assert ids.tolist() == [END, *the, END, END, *cat, END]


@torch.no_grad()
def test_likelihood_is_the_product_over_steps(task):
    ids = task.token_stream([{"text": TEXT[:20]}])
    loss = task.negative_log_likelihood_of(all_windows(ids, rows=2, context=8))
    assert task.negative_log_likelihood([{"text": TEXT[:20]}]).total.item() == pytest.approx(
        loss.total.item()
    )
    windows = list(task.examples([{"text": TEXT[:20]}]))
    assert task.loss(task.collate(windows), 0).total.item() == pytest.approx(loss.total.item())
    total, model = 0.0, task.model.eval()
    for start in range(0, len(ids) - 1, 8):
        state = model.begin(1)
        window, targets = ids[start : start + 8], ids[start + 1 : start + 9]
        for token, target in zip(window, targets, strict=False):
            log_probs, state = model.step(state, token[None].long())
            total -= log_probs[0, target].item()
    assert loss.count == len(ids) - 1
    assert loss.total.item() == pytest.approx(total, rel=1e-5)


@torch.no_grad()
@pytest.mark.parametrize("stride", [1, 3, 8])
def test_overlapping_windows_give_each_token_its_context(stride, seed):
    task, record = build_task("gpt2"), {"text": TEXT[:30]}
    task.evaluation_stride = stride
    ids, model, total = task.token_stream([record]).long(), task.model.eval(), 0.0
    for position in range(1, len(ids)):
        later = max(0, position - 8)  # tokens after the first window, up to this one
        end = min(len(ids) - 1, 8 + -(-later // stride) * stride)  # of the window that counts it
        states = model.teacher_forced(None, ids[None, end - 8 : position])
        total -= model.logits(states[0, -1]).log_softmax(-1)[ids[position]].item()
    loss = task.negative_log_likelihood([record])
    assert loss.count == len(ids) - 1
    assert loss.total.item() == pytest.approx(total, rel=1e-5)


@pytest.mark.parametrize(
    ("train", "message"),
    [
        ({"evaluation_stride": 65, "context_length": 64}, "is more than train.context_length = 64"),
        ({"evaluation_stride": 8, "carry_state": True}, "has no effect with train.carry_state"),
    ],
)
def test_a_stride_that_has_no_effect_is_refused(train, message):
    with pytest.raises(InputError, match=message):
        resolve_settings({"task": "language", "model": {"kind": "rnnlm"}, "train": train})


@torch.no_grad()
@pytest.mark.usefixtures("unchecked")  # the shapes are checked below
@pytest.mark.parametrize("kind", ["greedy", "beam", "sample"])
def test_an_output_depends_only_on_its_prompt(task, kind):
    prompts = ["", "t", "the c", "a", "the c", "the dog sat"]
    search = decoding(kind, 6)
    together = [best[0].ids for best in task.complete(prompts, decoding=search)]
    alone = [task.complete([prompt], decoding=search)[0][0].ids for prompt in prompts]
    reverse = [best[0].ids for best in task.complete(prompts[::-1], decoding=search)][::-1]
    if kind == "sample":  # a repeated prompt has another seed
        together[4] = reverse[2] = alone[4]
        reverse[4] = together[4]
    assert together == alone == reverse


@torch.no_grad()
def test_greedy_search_takes_the_likeliest_tokens(task):
    output, prompt = list[int](), "the c"
    model = task.model.eval()
    for _ in range(5):
        ids = torch.tensor([[END, *task.text.encode_ids([prompt])[0], *output]])
        best = int(model.logits(model.teacher_forced(None, ids)[:, -1])[0, 2:].argmax()) + 2
        if best == END:
            break
        output.append(best)
    assert task.complete([prompt], decoding=decoding("greedy", 5))[0][0].ids == output


def test_next_tokens(task):
    tokens = task.next_tokens("the", 1000)
    probabilities = [probability for _, probability in tokens]
    assert len(tokens) == task.text.size
    assert sum(probabilities) == pytest.approx(1, abs=1e-5)
    assert probabilities == sorted(probabilities, reverse=True)


def test_a_long_prompt_loses_its_beginning():
    task = build_task("gpt2")
    assert task.complete([TEXT * 3]) == task.complete([(TEXT * 3)[-14:]])
    assert task.next_tokens(TEXT * 3) == task.next_tokens((TEXT * 3)[-24:])


def language_settings(tmp_path: Path, kind: str, steps: int, carry_state: bool = False):
    (tmp_path / "text.txt").write_text(TEXT * 200)
    return resolve_settings(
        {
            "task": "language",
            "data": {"kind": "text", "train": str(tmp_path / "text.txt")},
            "model": {"kind": kind, **SMALL[kind]},
            "train": {
                "steps": steps,
                "context_length": 16,
                "examples_per_batch": 4,
                "carry_state": carry_state,
                "save_every": 3,
                "validate_every": 4,
                "learning_rate": 0.01,
                "keep_finished": True,
            },
            "text": {"kind": "characters"},
            "decode": {"kind": "greedy", "max_length": 12},
        }
    )


@pytest.mark.parametrize(
    ("kind", "carry_state"), [("gpt2", False), ("rnnlm", True), ("lstmn", False)]
)
def test_a_resumed_training_ends_with_the_same_weights(tmp_path, kind, carry_state):
    for folder, stops in (("at_once", [7]), ("resumed", [2, 4, 7])):
        for steps in stops:
            settings = language_settings(tmp_path, kind, steps, carry_state)
            list(Trainer(settings, tmp_path / folder, lambda _: None))
    at_once, resumed = (Run.load(tmp_path / folder) for folder in ("at_once", "resumed"))
    assert isinstance(at_once.task, LanguageTask)
    for name, weight in at_once.model.state_dict().items():
        assert torch.equal(weight, resumed.model.state_dict()[name]), name


@pytest.mark.usefixtures("unchecked")  # the shapes are checked above
def test_a_model_learns_a_text(tmp_path):
    settings = language_settings(tmp_path, "rnnlm", 200, carry_state=True)
    wider = settings.model.model_copy(update={"hidden_dim": 48, "layers": 1})
    settings = settings.model_copy(update={"model": wider})
    list(Trainer(settings, tmp_path / "run", lambda _: None))
    run = Run.load(tmp_path / "run")
    scores = run.score("test")
    assert scores["perplexity"] < 1.5
    assert scores["bits_per_character"] < math.log2(1.6)
    record = run.task.parse("the cat s", "input 1")
    [prediction] = run.predict([record])
    assert prediction.text.startswith("the cat sat on the")
    assert {**record, **prediction.as_dict()}.keys() == {"prompt", "text", "outputs"}
    assert run.task.validation_metric("perplexity", run.read_split("test")) < 1.5
    details = run.task.details(record)
    assert details["next"][0] == {"word": "sat", "probability": pytest.approx(1, abs=0.2)}
    assert details["next_tokens"][0] == {"token": "a", "probability": pytest.approx(1, abs=0.1)}
    assert [word for word, _ in run.task.next_words("the cat ", 1)] == ["sat"]


def test_tensors_of_a_state_can_be_replaced():
    model = build_model("rnnlm", {**SMALL["rnnlm"], "size": 9})
    _, state = model.read(model.begin(3), torch.randint(9, (3, 4)))
    tensors = state_tensors(state)
    assert len(tensors) == 2
    restored = replace_tensors(model.begin(3), iter(tensors))
    assert all(a is b for a, b in zip(state_tensors(restored), tensors, strict=True))


@pytest.mark.parametrize("kind", ["gpt2", "lstmn"])
def test_attention_of_a_text(kind):
    task = build_task(kind)
    tokens, weights = task.ids_attention(task.text_ids("the"))
    assert tokens == ["</s>", "t", "h", "e"]
    assert weights.shape == (4, 4)
    assert torch.equal(weights, weights.tril(0 if kind == "gpt2" else -1))
    rows = weights.sum(1)[0 if kind == "gpt2" else 1 :]  # the first token of an lstmn has no memory
    assert torch.allclose(rows, torch.ones_like(rows))
    attention = task.attention_map({"prompt": "the"})
    assert list(attention.queries.tokens) == tokens
    assert torch.allclose(torch.as_tensor(attention.layers[-1].weights).mean(0), weights)
    assert len(attention.annotations.choices) == 4


def test_a_model_without_attention():
    task = build_task("rnnlm")
    with pytest.raises(ValueError, match="model Rnnlm has no attention to observe"):
        task.ids_attention(task.text_ids("the"))
