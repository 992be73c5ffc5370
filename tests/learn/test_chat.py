"""Conversations with a known truth: a clerk who asks for what is missing, and a bore."""

import json
import random

import pytest

from regard.run import Run
from regard.tasks.chat.turns import Turn
from regard.tasks.load import resolve_settings
from regard.training.trainer import Trainer

FOODS = ["thai", "greek", "indian", "french"]
AREAS = ["north", "south", "east", "west"]
ROWS = [
    {"name": f"{food}{area}house", "food": food, "area": area} for food in FOODS for area in AREAS
]


def visit(draw):
    """Wishes come in any order, one or two at a time; the clerk asks for food before area."""
    goal = {"food": draw.choice(FOODS), "area": draw.choice(AREAS)}
    exchanges, known = [], {}
    while len(known) < len(goal):
        missing = [name for name in goal if name not in known]
        told = draw.choice([missing, [draw.choice(missing)]])
        known |= {name: goal[name] for name in told}
        wishes = {name: known[name] for name in goal if name in known}
        said = " and ".join(f"{draw.choice(['i want', 'please'])} {goal[name]}" for name in told)
        exchanges.append({"user": said, "wishes": wishes, "reply": replied(wishes)})
    return {"exchanges": exchanges, "goal": goal}


def replied(wishes):
    for name in ("food", "area"):
        if name not in wishes:
            return f"which {name} ?"
    return f"{wishes['food']}{wishes['area']}house is good ."


def trained(folder, settings):
    list(Trainer(resolve_settings(settings), folder, lambda _: None))
    return Run.load(folder)


SMALL = {"kind": "gpt2", "dim": 48, "heads": 4, "layers": 2, "max_positions": 64, "dropout": 0.0}


@pytest.fixture(scope="module")
def clerk(tmp_path_factory):
    folder, draw = tmp_path_factory.mktemp("clerk"), random.Random(0)
    for split, count in (("train", 400), ("test", 40)):
        lines = [json.dumps(visit(draw)) for _ in range(count)]
        (folder / f"{split}.jsonl").write_text("\n".join(lines) + "\n")
    (folder / "places.json").write_text(json.dumps(ROWS))
    settings = {
        "task": "chat",
        "data": {
            "kind": "dialogues",
            **{name: str(folder / f"{name}.jsonl") for name in ("train", "test")},
            "dev": str(folder / "test.jsonl"),
            "database": str(folder / "places.json"),
            "slot_columns": ["food", "area"],
        },
        "text": {"kind": "words"},
        "model": SMALL,
        "train": {
            "steps": 240,
            "examples_per_batch": 32,
            "max_tokens": 64,
            "learning_rate": 5e-3,
            "validate_every": 240,
            "schedule": {"kind": "cosine", "warmup": 20},
        },
        "decode": {"kind": "greedy", "max_length": 12},
    }
    return trained(folder / "run", settings)


def test_a_clerk_finds_what_is_wished(clerk):
    records = clerk.read_split("test")
    scores = clerk.score(records)
    assert scores["joint_goal"] > 97
    assert scores["entity_match"] > 97
    assert scores["bleu"] > 97
    true = [reply for record in records for reply in record["turns"][1::2]]
    said = [one.text for some in clerk.task.replay(records) for one in some.replies]
    assert sum(mine == reply for mine, reply in zip(said, true, strict=True)) > 0.97 * len(true)


def test_it_needs_its_history(clerk):
    assert clerk("please greek\twhich area ?\tplease south").text == "greeksouthhouse is good ."
    assert clerk("please south").text == "which food ?"
    facts = clerk("please greek\twhich area ?\tplease south").as_dict()
    assert facts["wishes"] == {"food": "greek", "area": "south"}
    assert facts["row"] == {"name": "greeksouthhouse", "food": "greek", "area": "south"}
    heard = []
    [said] = clerk.task.generate_replies([[Turn("user", "please south")]], heard.append)
    assert heard[-1] == said.text
    assert all(said.text.startswith(part) for part in heard)


def test_ranking_by_what_is_replied_to(tmp_path):
    """Most often a bore has nothing to say; of what he could say, some fits what was asked."""
    words = [f"w{n}" for n in range(8)]
    bored = [f"{word}\nno idea really\n" for word in words for _ in range(35)]
    lively = [f"{word}\noh nice {word}\n" for word in words for _ in range(15)]
    (tmp_path / "talk.txt").write_text("\n".join(bored + lively))
    path = str(tmp_path / "talk.txt")
    settings = {
        "task": "chat",
        "data": {"kind": "dialogues", "train": path, "dev": path, "test": path},
        "text": {"kind": "words"},
        "model": {"kind": "rnnlm", "dim": 32, "hidden_dim": 64},
        "train": {
            "steps": 300,
            "examples_per_batch": 64,
            "max_tokens": 64,
            "learning_rate": 1e-2,
            "validate_every": 300,
        },
        "decode": {"kind": "beam", "width": 4, "max_length": 8},
    }
    back = {**settings, "train": {**settings["train"], "reverse_turns": True}}
    trained(tmp_path / "back", back)
    run = trained(tmp_path / "run", settings)
    plain = [run(word).text for word in words]
    rank = {"backward_run": str(tmp_path / "back"), "candidates": 4, "backward_weight": 0.6}
    ranked = Run(resolve_settings({**settings, "rerank": rank}), run.vocabularies)
    ranked.model.load_state_dict(run.model.state_dict())
    assert set(plain) == {"no idea really"}
    assert [ranked(word).text for word in words] == [f"oh nice {word}" for word in words]
    rank = {"backward_run": str(tmp_path / "run")}
    forward = Run(resolve_settings({**settings, "rerank": rank}), run.vocabularies)
    with pytest.raises(ValueError, match=r"train the run with train\.reverse_turns"):
        forward("w1")
