"""Language models as a task: streams, likelihood, prompts, and training that goes on exactly."""

import math
from pathlib import Path

import pytest
import torch

from regard.batching.text_windows import all_windows
from regard.decoding.constraints import Constraints
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


def made(kind: str) -> LanguageTask:
    letters = train_tokenizer("characters", [TEXT], 100)
    model = build_model(kind, {**SMALL[kind], "size": letters.size})
    return LanguageTask(model, letters, decoding=decoding("greedy"), context_length=8)


@pytest.fixture(params=KINDS)
def task(request) -> LanguageTask:
    return made(request.param)


def test_stream(task):
    ids = task.token_stream([{"text": "the"}, {"text": ""}, {"text": "cat"}])
    the, cat = task.text.encode_ids(["the", "cat"])
    assert ids.tolist() == [END, *the, END, END, *cat, END]


@torch.no_grad()
def test_likelihood_is_that_of_one_token_after_the_other(task):
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
        for now, after in zip(ids[start : start + 8], ids[start + 1 : start + 9], strict=False):
            log_probs, state = model.step(state, now[None].long())
            total -= log_probs[0, after].item()
    assert loss.count == len(ids) - 1
    assert loss.total.item() == pytest.approx(total, rel=1e-5)


@torch.no_grad()
@pytest.mark.parametrize("kind", ["greedy", "beam", "sample"])
def test_outputs_depend_on_nothing_but_their_prompt(task, kind):
    prompts = ["", "t", "the c", "a", "the c", "the dog sat"]
    how = decoding(kind, 6)
    together = [best[0].ids for best in task.complete(prompts, decoding=how)]
    alone = [task.complete([prompt], decoding=how)[0][0].ids for prompt in prompts]
    turned = [best[0].ids for best in task.complete(prompts[::-1], decoding=how)][::-1]
    if kind == "sample":  # the same prompt again draws anew
        together[4] = turned[2] = alone[4]
        turned[4] = together[4]
    assert together == alone == turned


@torch.no_grad()
def test_greedy_is_the_likeliest_token_each_time(task):
    said, prompt = list[int](), "the c"
    model = task.model.eval()
    for _ in range(5):
        ids = torch.tensor([[END, *task.text.encode_ids([prompt])[0], *said]])
        best = int(model.logits(model.teacher_forced(None, ids)[:, -1])[0, 2:].argmax()) + 2
        if best == END:
            break
        said.append(best)
    assert task.complete([prompt], decoding=decoding("greedy", 5))[0][0].ids == said


def test_what_follows(task):
    found = task.next_tokens("the", 1000)
    assert len(found) == task.text.size
    assert sum(p for _, p in found) == pytest.approx(1, abs=1e-5)
    assert [p for _, p in found] == sorted((p for _, p in found), reverse=True)


def test_a_prompt_beyond_the_context_is_cut_at_its_beginning():
    task = made("gpt2")
    assert task.complete([TEXT * 3]) == task.complete([(TEXT * 3)[-14:]])
    assert task.next_tokens(TEXT * 3) == task.next_tokens((TEXT * 3)[-24:])


def settings(tmp_path: Path, kind: str, steps: int, carry: bool = False):
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
                "carry_state": carry,
                "save_every": 3,
                "validate_every": 4,
                "learning_rate": 0.01,
            },
            "decode": {"kind": "greedy", "max_length": 12},
        }
    )


@pytest.mark.parametrize(("kind", "carry"), [("gpt2", False), ("rnnlm", True), ("lstmn", False)])
def test_stopped_and_taken_up_it_ends_the_same(tmp_path, kind, carry):
    for folder, stops in (("whole", [7]), ("parts", [2, 4, 7])):
        for steps in stops:
            fit = Trainer(settings(tmp_path, kind, steps, carry), tmp_path / folder, lambda _: None)
            list(fit)
    one, other = (Run.load(tmp_path / folder) for folder in ("whole", "parts"))
    assert isinstance(one.task, LanguageTask)
    for name, weight in one.model.state_dict().items():
        assert torch.equal(weight, other.model.state_dict()[name]), name


def test_it_learns_what_it_reads(tmp_path):
    wanted = settings(tmp_path, "rnnlm", 200, carry=True)
    wider = wanted.model.model_copy(update={"hidden_dim": 48, "layers": 1})
    fit = Trainer(wanted.model_copy(update={"model": wider}), tmp_path / "run", lambda _: None)
    list(fit)
    run = Run.load(tmp_path / "run")
    scores = run.score("test")
    assert scores["perplexity"] < 1.5
    assert scores["bits_per_character"] < math.log2(1.6)
    record = run.task.parse("the cat s", "input 1")
    [reply] = run.predict([record])
    assert reply.text.startswith("the cat sat on the")
    assert {**record, **reply.as_dict()}.keys() == {"prompt", "outputs"}
    assert run.task.validation_metric("perplexity", run.read_split("test")) < 1.5
    facts = run.task.details(record)
    assert facts["next"][0] == {"word": "sat", "probability": pytest.approx(1, abs=0.2)}
    assert facts["next_tokens"][0] == {"token": "a", "probability": pytest.approx(1, abs=0.1)}
    assert [word for word, _ in run.task.next_words("the cat ", 1)] == ["sat"]


def test_states_can_be_taken_apart():
    model = build_model("rnnlm", {**SMALL["rnnlm"], "size": 9})
    _, state = model.read(model.begin(3), torch.randint(9, (3, 4)))
    parts = state_tensors(state)
    assert len(parts) == 2
    again = replace_tensors(model.begin(3), iter(parts))
    assert all(a is b for a, b in zip(state_tensors(again), parts, strict=True))


@pytest.mark.parametrize("kind", ["gpt2", "lstmn"])
def test_what_was_looked_at(kind):
    task = made(kind)
    tokens, weights = task.text_attention("the")
    assert tokens == ["</s>", "t", "h", "e"]
    assert weights.shape == (4, 4)
    assert torch.equal(weights, weights.tril(0 if kind == "gpt2" else -1))
    rows = weights.sum(1)[0 if kind == "gpt2" else 1 :]  # the first of an lstmn has nothing before
    assert torch.allclose(rows, torch.ones_like(rows))
    shown = task.attention_map({"prompt": "the"})
    assert list(shown.queries.tokens) == tokens
    assert torch.allclose(torch.as_tensor(shown.layers[-1].weights).mean(0), weights)
    assert len(shown.annotations.choices) == 4


def test_nothing_to_look_at():
    task = made("rnnlm")
    with pytest.raises(ValueError, match="model Rnnlm has no attention to observe"):
        task.text_attention("the")
