"""Language models as a task: streams, likelihood, prompts, and training that goes on exactly."""

import math
from pathlib import Path

import pytest
import torch

from regard.batch.windows import whole
from regard.config.load import resolve
from regard.decode.rules import Rules
from regard.models.catalogue import MODELS, build
from regard.tasks.language import Language
from regard.text.learn import train_tokeniser
from regard.text.special import END
from regard.train.fit import Fit
from regard.train.language import LanguageRun, refilled, tensors_of
from regard.train.run import Run
from regard.train.search import search_of

TEXT = "the cat sat on the mat. the dog sat on the log. "
KINDS = [kind for kind, entry in MODELS.items() if "language" in entry.tasks]
SMALL = {
    "gpt2": {"dim": 16, "heads": 2, "layers": 2, "context": 24, "dropout": 0.0},
    "rnnlm": {"dim": 8, "hidden_dim": 12, "layers": 2},
    "lstmn": {"dim": 8, "hidden_dim": 12},
}


@pytest.fixture(params=KINDS)
def task(request) -> Language:
    letters = train_tokeniser("characters", [TEXT], 100)
    return Language(build(request.param, {**SMALL[request.param], "size": letters.size}), letters)


def test_stream(task):
    ids = task.stream([{"text": "the"}, {"text": ""}, {"text": "cat"}])
    the, cat = task.text.ids(["the", "cat"])
    assert ids.tolist() == [END, *the, END, END, *cat, END]


@torch.no_grad()
def test_likelihood_is_that_of_one_token_after_the_other(task):
    ids = task.stream([{"text": TEXT[:20]}])
    loss = task.likelihood(whole(ids, rows=2, context=8))
    total, model = 0.0, task.model.eval()
    for start in range(0, len(ids) - 1, 8):
        state = model.begin(1)
        for now, after in zip(ids[start : start + 8], ids[start + 1 : start + 9], strict=False):
            log_probs, state = model.step(state, now[None].long())
            total -= log_probs[0, after].item()
    assert loss.tokens == len(ids) - 1
    assert loss.total.item() == pytest.approx(total, rel=1e-5)


@torch.no_grad()
@pytest.mark.parametrize("kind", ["greedy", "beam", "sample"])
def test_outputs_depend_on_nothing_but_their_prompt(task, kind):
    prompts = ["", "t", "the c", "a", "the c", "the dog sat"]
    settings = resolve({"task": "language", "decode": {"kind": kind}})
    search, rules = search_of(settings.decode), Rules(6)
    together = [best[0].ids for best in task.complete(prompts, search, rules)]
    alone = [task.complete([prompt], search, rules)[0][0].ids for prompt in prompts]
    turned = [best[0].ids for best in task.complete(prompts[::-1], search, rules)][::-1]
    if kind == "sample":  # the same prompt again draws anew
        together[4] = turned[2] = alone[4]
        turned[4] = together[4]
    assert together == alone == turned


@torch.no_grad()
def test_greedy_is_the_likeliest_token_each_time(task):
    said, prompt = list[int](), "the c"
    model = task.model.eval()
    for _ in range(5):
        ids = torch.tensor([[END, *task.text.ids([prompt])[0], *said]])
        best = int(model.logits(model.forced(None, ids)[:, -1])[0, 2:].argmax()) + 2
        if best == END:
            break
        said.append(best)
    settings = resolve({"task": "language", "decode": {"kind": "greedy"}})
    assert task.complete([prompt], search_of(settings.decode), Rules(5))[0][0].ids == said


def test_what_follows(task):
    found = task.next_tokens("the", 1000)
    assert len(found) == task.text.size
    assert sum(p for _, p in found) == pytest.approx(1, abs=1e-5)
    assert [p for _, p in found] == sorted((p for _, p in found), reverse=True)


def test_a_prompt_beyond_the_context_is_cut_at_its_beginning():
    letters = train_tokeniser("characters", [TEXT], 100)
    task = Language(build("gpt2", {**SMALL["gpt2"], "size": letters.size}), letters)
    search = search_of(resolve({"task": "language", "decode": {"kind": "greedy"}}).decode)
    long = task.complete([TEXT * 3], search, Rules(10))
    assert long == task.complete([(TEXT * 3)[-14:]], search, Rules(10))
    assert task.next_tokens(TEXT * 3) == task.next_tokens((TEXT * 3)[-24:])


def settings(tmp_path: Path, kind: str, steps: int, carry: bool = False):
    (tmp_path / "text.txt").write_text(TEXT * 200)
    return resolve(
        {
            "task": "language",
            "data": {"kind": "text", "train": str(tmp_path / "text.txt")},
            "model": {"kind": kind, **SMALL[kind]},
            "train": {
                "steps": steps,
                "context": 16,
                "sentences_per_batch": 4,
                "carry": carry,
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
            fit = Fit(settings(tmp_path, kind, steps, carry), tmp_path / folder, lambda _: None)
            list(fit.events())
    one, other = (Run.load(tmp_path / folder) for folder in ("whole", "parts"))
    assert isinstance(one, LanguageRun)
    for name, weight in one.model.state_dict().items():
        assert torch.equal(weight, other.model.state_dict()[name]), name


def test_it_learns_what_it_reads(tmp_path):
    wanted = settings(tmp_path, "rnnlm", 200, carry=True)
    wider = wanted.model.model_copy(update={"hidden_dim": 48, "layers": 1})
    fit = Fit(wanted.model_copy(update={"model": wider}), tmp_path / "run", lambda _: None)
    list(fit.events())
    run = LanguageRun.load(tmp_path / "run")
    scores = run.score(run.corpus().read("test"))
    assert scores["perplexity"] < 1.5
    assert scores["bits_per_character"] < math.log2(1.6)
    [reply] = run.reply(["the cat s"])
    assert reply.text.startswith("the cat sat on the")
    assert set(reply.facts) == {"prompt", "outputs"}
    facts = run.further("the cat s")
    assert facts["next"][0] == {"word": "sat", "probability": pytest.approx(1, abs=0.2)}
    assert facts["next_tokens"][0] == {"token": "a", "probability": pytest.approx(1, abs=0.1)}
    assert [word for word, _ in run.next_words("the cat ", 1)] == ["sat"]


def test_states_can_be_taken_apart():
    model = build("rnnlm", {**SMALL["rnnlm"], "size": 9})
    _, state = model.read(model.begin(3), torch.randint(9, (3, 4)))
    parts = tensors_of(state)
    assert len(parts) == 2
    again = refilled(model.begin(3), iter(parts))
    assert all(a is b for a, b in zip(tensors_of(again), parts, strict=True))


@pytest.mark.parametrize("kind", ["gpt2", "lstmn"])
def test_what_was_looked_at(kind):
    letters = train_tokeniser("characters", [TEXT], 100)
    task = Language(build(kind, {**SMALL[kind], "size": letters.size}), letters)
    tokens, weights = task.looked("the")
    assert tokens == ["</s>", "t", "h", "e"]
    assert weights.shape == (4, 4)
    assert torch.equal(weights, weights.tril(0 if kind == "gpt2" else -1))
    rows = weights.sum(1)[0 if kind == "gpt2" else 1 :]  # the first of an lstmn has nothing before
    assert torch.allclose(rows, torch.ones_like(rows))


def test_nothing_to_look_at():
    letters = train_tokeniser("characters", [TEXT], 100)
    task = Language(build("rnnlm", {**SMALL["rnnlm"], "size": letters.size}), letters)
    with pytest.raises(ValueError, match="model Rnnlm has no attention to look at"):
        task.looked("the")
