"""Screenshots of the served page: train a small run for each task, serve all, and take pictures.

    python benchmarks/screenshots.py --runs FOLDER [--only SCENE ...] [--to docs/pictures/serve]

Runs that are in FOLDER are not trained again. Public data comes from REGARD_MIRROR or the web.
Needs playwright and chromium.
"""

import argparse
import gzip
import io
import json
import os
import shutil
import socket
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any, NamedTuple
from urllib.parse import urlencode
from urllib.request import urlopen

import torch
import uvicorn
from PIL import Image

import regard
from regard.serve.application import build_app

WORDS = {"text": {"kind": "words", "lower": True}}
CHARACTERS = {"text": {"kind": "characters"}}


class Recipe(NamedTuple):
    """How a run is trained: arguments of `regard.fit`."""

    task: str
    data: Any
    model: dict[str, Any]
    steps: int
    settings: dict[str, Any] = {}  # noqa: RUF012
    train: dict[str, Any] = {}  # noqa: RUF012


def english_captions(count: int = 29_000) -> list[dict[str, str]]:
    """Return the English captions of Multi30k, from a folder that REGARD_MIRROR names."""
    path = Path(os.environ["REGARD_MIRROR"], "translation/multi30k_tok/train.lc.norm.tok.en.gz")
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [{"text": line.strip()} for line in lines][:count]


NAMES = [
    "Anna",
    "Ben",
    "Carla",
    "David",
    "Emma",
    "Felix",
    "Greta",
    "Hugo",
    "Ida",
    "Jonas",
    "Klara",
    "Leo",
    "Mia",
    "Noah",
    "Olga",
    "Paul",
]
TRAITS = {
    "lives in": (
        "Where does {} live?",
        ["Berlin", "Rome", "Oslo", "Paris", "Lisbon", "Vienna", "Prague", "Dublin"],
    ),
    "drinks": (
        "What does {} drink?",
        ["tea", "coffee", "milk", "cocoa", "lemonade", "water", "juice", "cider"],
    ),
    "plays": (
        "What does {} play?",
        ["chess", "tennis", "football", "poker", "golf", "hockey", "cricket", "go"],
    ),
    "studies": (
        "What does {} study?",
        ["law", "music", "physics", "history", "biology", "medicine", "art"],
    ),
}
CAPITALS = (
    "Paris France French, Berlin Germany German, Rome Italy Italian, Madrid Spain Spanish, "
    "Lisbon Portugal Portuguese, Vienna Austria German, Warsaw Poland Polish, Athens Greece Greek, "
    "Prague Czechia Czech, Oslo Norway Norwegian, Helsinki Finland Finnish, Tokyo Japan Japanese"
)


def everyday_facts(count: int = 8000) -> list[dict[str, Any]]:
    """Return questions about one of several facts on several people."""
    rng, records = Random(1), list[dict[str, Any]]()
    for _ in range(count):
        people, verbs = rng.sample(NAMES, 3), rng.sample(list(TRAITS), 2)
        facts = [(name, verb, rng.choice(TRAITS[verb][1])) for name in people for verb in verbs]
        rng.shuffle(facts)
        context = " ".join(f"{name} {verb} {value} ." for name, verb, value in facts)
        name, verb, value = rng.choice(facts)
        start = context.index(f"{name} {verb} {value}") + len(f"{name} {verb} ")
        answer = {"text": value, "answer_start": start}
        question = TRAITS[verb][0].format(name).replace("?", " ?")
        records.append({"question": question, "context": context, "answers": [answer]})
    return records


def capital_documents(count: int = 3000) -> list[dict[str, str]]:
    """Return documents of sentences about capitals."""
    rng = Random(1)
    capitals = [entry.split() for entry in CAPITALS.split(", ")]
    forms = (
        "{0} is the capital of {1} .",
        "the people in {0} speak {2} .",
        "in {1} they speak {2} .",
        "she took a train to {0} and learned {2} .",
    )
    return [
        {"text": "\n".join(rng.choice(forms).format(*rng.choice(capitals)) for _ in range(4))}
        for _ in range(count)
    ]


def public(name: str, **options: Any) -> dict[str, Any]:
    return {"kind": "public", "name": name, **options}


COSINE = {"schedule": {"kind": "cosine", "warmup": 50}}
GREEDY = {"decode": {"kind": "greedy", "max_length": 40}}


def recipes() -> dict[str, Recipe]:
    """Return the runs by name, quick ones first."""
    return {
        "dates": Recipe(
            "translate",
            {"kind": "dates", "size": 40_000},
            {"kind": "rnnsearch", "dim": 64, "hidden_dim": 128, "init": "scaled"},
            700,
            {**CHARACTERS, "decode": {"kind": "beam", "width": 4, "max_length": 12}},
            {"tokens_per_batch": 2000, "learning_rate": 0.003, **COSINE},
        ),
        "dates-transformer": Recipe(
            "translate",
            {"kind": "dates", "size": 40_000},
            {"kind": "transformer", "dim": 64, "heads": 4, "layers": 2, "hidden_dim": 256},
            1500,
            {**CHARACTERS, "decode": {"kind": "beam", "width": 4, "max_length": 12}},
            {"tokens_per_batch": 2000, "learning_rate": 0.003, **COSINE},
        ),
        "copy": Recipe(
            "copy",
            {
                "kind": "copy",
                "size": 20_000,
                "held_out": 50,
                "width": 6,
                "min_vectors": 1,
                "max_vectors": 10,
                "test_sizes": [10],
            },
            {"kind": "ntm", "controller": "feedforward", "dim": 64, "slots": 24, "slot_dim": 12},
            2000,
            {},
            {"examples_per_batch": 16, "learning_rate": 0.002, "max_grad_norm": 10.0},
        ),
        "bandit": Recipe(
            "bandit",
            {"kind": "bandit", "arms": 5, "steps": 10},
            {"kind": "snail", "dim": 32, "blocks": ["TC(32)", "TC(32)", "A(32, 32)"]},
            250,
            {},
            {
                "examples_per_batch": 256,
                "rollout_environments": 1024,
                "rollout_epochs": 3,
                "learning_rate": 0.003,
                "gae_lambda": 0.5,
                "entropy_weight": 0.02,
                "exploration_rate": 0.25,
            },
        ),
        "facts": Recipe(
            "answer",
            everyday_facts,
            {
                "kind": "bidaf",
                "dim": 32,
                "hidden_dim": 32,
                "layers": 1,
                "character_output_dim": 16,
                "filters": [[3, 16]],
                "dropout": 0.0,
            },
            300,
            {**WORDS, "head": {"max_answer_tokens": 3, "dropout": 0.0}},
            {"examples_per_batch": 64, "learning_rate": 0.005, "max_grad_norm": 5.0, **COSINE},
        ),
        "headlines": Recipe(
            "summarize",
            {"kind": "headlines"},
            {"kind": "pointer", "dim": 48, "hidden_dim": 64},
            600,
            {"decode": {"kind": "beam", "width": 4, "max_length": 24}},
            {"examples_per_batch": 32, "learning_rate": 0.003},
        ),
        "reviews": Recipe(
            "classify",
            public("sst2"),
            {"kind": "birnn", "dim": 100, "hidden_dim": 64, "dropout": 0.4},
            700,
            {"text": {"kind": "words", "size": 20_000}},
            {"examples_per_batch": 50, "learning_rate": 0.002, "metric": "accuracy"},
        ),
        "assistant": Recipe(
            "understand",
            public("snips"),
            {"kind": "birnn_attention", "dim": 96, "hidden_dim": 96, "dropout": 0.3},
            700,
            {"text": {"kind": "words", "min_count": 1, "size": 20_000}},
            {"examples_per_batch": 32, "learning_rate": 0.003, **COSINE},
        ),
        "flights": Recipe(
            "tag",
            public("atis"),
            {"kind": "bert", "dim": 96, "heads": 4, "layers": 2},
            700,
            {"text": {"kind": "words", "min_count": 1, "size": 20_000}},
            {"examples_per_batch": 32, "learning_rate": 0.001, **COSINE},
        ),
        "fashion": Recipe(
            "image",
            public("fashion_mnist_20k"),
            {
                "kind": "vit",
                "patch_size": 4,
                "dim": 48,
                "heads": 4,
                "layers": 3,
                "stem": "convolution",
            },
            500,
            {"image": {"size": [28, 28], "channels": 1, "mean": [0.286], "std": [0.353]}},
            {"examples_per_batch": 64, "learning_rate": 0.002, "metric": "accuracy", **COSINE},
        ),
        "digits": Recipe(
            "caption",
            {"kind": "digits", "size": 12_000, "side": 24},
            {
                "kind": "show_attend",
                "dim": 16,
                "hidden_dim": 64,
                "image_dim": 48,
                "image_layers": 2,
                "pooling_layers": 2,
            },
            1800,
            {
                "image": {"size": [24, 24], "channels": 1, "mean": [0.25], "std": [0.25]},
                "decode": {"kind": "greedy", "max_length": 20},
            },
            {"examples_per_batch": 48, "learning_rate": 0.005, "max_grad_norm": 1.0, **COSINE},
        ),
        "chorales": Recipe(
            "music",
            public("jsb_chorales"),
            {"kind": "roll_gpt", "dim": 96, "heads": 4, "layers": 2},
            600,
            {"decode": {"max_length": 32}},
            {"examples_per_batch": 8, "learning_rate": 0.002, **COSINE},
        ),
        "captions": Recipe(
            "language",
            english_captions,
            {"kind": "gpt2", "dim": 128, "heads": 4, "layers": 3, "max_positions": 64},
            1500,
            {**WORDS, "decode": {"kind": "sample", "max_length": 24, "temperature": 0.7}},
            {"examples_per_batch": 24, "context_length": 48, "learning_rate": 0.002, **COSINE},
        ),
        "capitals": Recipe(
            "pretrain",
            capital_documents,
            {"kind": "bert", "dim": 64, "heads": 4, "layers": 2, "pretrain": "masked"},
            2500,
            dict(WORDS),
            {"examples_per_batch": 32, "max_tokens": 32, "learning_rate": 0.002, **COSINE},
        ),
        "restaurants": Recipe(
            "chat",
            public("camrest676"),
            {"kind": "gpt2", "dim": 96, "heads": 4, "layers": 2, "max_positions": 512},
            900,
            {
                "text": {"kind": "byte_bpe", "size": 1500, "lower": True},
                "decode": {"kind": "greedy", "max_length": 60},
            },
            {"examples_per_batch": 8, "max_tokens": 300, "learning_rate": 0.002, **COSINE},
        ),
        "proteins": Recipe(
            "fold",
            public("cb513", states=3),
            {"kind": "bert", "dim": 64, "heads": 4, "layers": 2},
            400,
            {},
            {"examples_per_batch": 16, "max_tokens": 128, "learning_rate": 0.002, **COSINE},
        ),
        "points": Recipe(
            "fold",
            {
                "kind": "points",
                "shape": "cloud",
                "size": 20_000,
                "min_points": 12,
                "max_points": 12,
                "visible_fraction": 0.35,
            },
            {
                "kind": "msa",
                "dim": 8,
                "pair_dim": 24,
                "heads": 1,
                "pair_heads": 4,
                "head_dim": 8,
                "layers": 2,
                "max_relative_position": 0,
                "triangles": "both",
            },
            500,
            {},
            {"examples_per_batch": 32, "max_tokens": 12, "learning_rate": 0.003, **COSINE},
        ),
        "recall": Recipe(
            "recall",
            {
                "kind": "recall",
                "size": 20_000,
                "held_out": 50,
                "width": 4,
                "vectors_per_item": 2,
                "min_items": 2,
                "max_items": 4,
                "test_sizes": [4],
            },
            {"kind": "ntm", "controller": "feedforward", "dim": 64, "slots": 24, "slot_dim": 12},
            3500,
            {},
            {"examples_per_batch": 16, "learning_rate": 0.003, "max_grad_norm": 10.0},
        ),
        "characters": Recipe(
            "fewshot",
            public("omniglot", ways=5, shots=1, rotations=True, eval_episodes=200),
            {
                "kind": "snail",
                "blocks": ["A(32, 32)", "TC(32)", "A(32, 32)"],
                "tie_query_key_init": True,
            },
            700,
            {"embed": {"dim": 64, "hidden_dim": 24, "layers": 4}},
            {"examples_per_batch": 8, "queries": 5, "learning_rate": 0.002, **COSINE},
        ),
    }


def train_runs(folder: Path, names: list[str]) -> dict[str, Path]:
    """Train the runs that are not there yet; return the folder of each."""
    paths = dict[str, Path]()
    for name, recipe in recipes().items():
        if names and name not in names:
            continue
        paths[name] = folder / name
        if (folder / name / "best").exists() or (folder / name / ".trained").exists():
            continue
        data = recipe.data() if callable(recipe.data) else recipe.data
        start = time.perf_counter()
        regard.fit(
            recipe.task,
            data,
            recipe.model,
            steps=recipe.steps,
            folder=folder / name,
            settings={**recipe.settings, "train": {"validate_every": 250, **recipe.train}},
            progress=False,
        )
        (folder / name / ".trained").touch()
        print(f"{name}: trained in {time.perf_counter() - start:.0f} s", flush=True)
    return paths


class Scene(NamedTuple):
    """What a picture shows: a run, the values of its form or an example, and what is done."""

    name: str
    run: str
    values: dict[str, Any] | None = None
    example: int = 0
    other: str = ""
    clicks: tuple[str, ...] = ()


SCENES = (
    Scene("translate", "dates", {"source": "Tuesday, May 3rd, 1994"}),
    Scene("compare", "dates", {"source": "le 14 juillet 1989"}, other="dates-transformer"),
    Scene("summarize", "headlines"),
    Scene("language", "captions", {"prompt": "a little girl in a pink dress"}),
    Scene(
        "chat", "restaurants", {"turns": ["I want a moderately priced restaurant in the south."]}
    ),
    Scene("classify", "reviews", {"text": "a warm , funny and thoroughly charming film"}),
    Scene("tag", "flights", {"text": "show me flights from boston to denver on monday morning"}),
    Scene("understand", "assistant"),
    Scene("answer", "facts", None),
    Scene("pretrain", "capitals", {"text": "the people in athens speak [MASK] ."}),
    Scene("image", "fashion", None, 3),
    Scene("caption", "digits", None, 0),
    Scene("music", "chorales", None, 2),
    Scene("copy", "copy", None, 1),
    Scene("recall", "recall", None, 1),
    Scene("bandit", "bandit", None, 0),
    Scene("fewshot", "characters", None, 1),
    Scene("fold", "proteins", None, 1),
    Scene("fold-distances", "points", None, 0),
    Scene("edit", "dates", {"source": "23. Februar 2031"}, clicks=(".edits summary", ".head")),
)
SIZES = {"": (1280, 800), "-phone": (360, 740)}


def take_pictures(port: int, folder: Path, names: list[str]) -> None:
    """Write one picture per scene and size."""
    from playwright.sync_api import sync_playwright

    folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        for scene in SCENES:
            if not names or scene.name in names:
                for suffix, size in SIZES.items():
                    path = folder / f"{scene.name}{suffix}.png"
                    take_picture(browser, f"http://127.0.0.1:{port}/", scene, size, path)
        browser.close()


def take_picture(
    browser: Any, address: str, scene: Scene, size: tuple[int, int], path: Path
) -> None:
    """Open the page with the state of a scene, and write what is seen."""
    state: dict[str, str] = {"run": scene.run, "other": scene.other}
    if scene.values is None:
        values = example_values(f"{address}api/runs/{scene.run}/examples", scene.example)
        if values:
            state["input"] = json.dumps(values)
        else:
            state["example"] = str(scene.example)
    else:
        state["input"] = json.dumps(scene.values)
    page = browser.new_page(viewport={"width": size[0], "height": size[1]})
    page.set_default_timeout(120_000)
    page.on("console", lambda message: print(f"{scene.name}: {message.text}"))
    page.goto(f"{address}#{urlencode({key: value for key, value in state.items() if value})}")
    page.wait_for_selector("body[data-ready=yes]", state="attached")
    for selector in scene.clicks:
        page.locator(selector).first.click()
    page.wait_for_selector(".before-after[aria-busy=false]" if scene.clicks else ".result > *")
    page.wait_for_timeout(800)
    page.mouse.move(0, 0)
    data = page.screenshot()
    page.close()
    with Image.open(io.BytesIO(data)) as image:
        image.convert("RGB").quantize(256, dither=Image.Dither.NONE).save(path, optimize=True)
    print(f"{path}: {path.stat().st_size / 1000:.0f} kB", flush=True)


def example_values(address: str, index: int) -> dict[str, Any]:
    with urlopen(address, timeout=300) as answer:  # noqa: S310 - our own server
        return json.load(answer)[index]["values"]


def serve_runs(paths: Mapping[str, Path]) -> int:
    """Serve runs in a thread; return the port."""
    app = build_app({name: regard.load(path) for name, path in paths.items()})
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = uvicorn.Server(uvicorn.Config(app, port=port, log_level="error"))
    threading.Thread(target=server.run, daemon=True).start()
    while not server.started:
        time.sleep(0.05)
    return port


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--runs", type=Path, required=True, help="folder of the runs")
    parser.add_argument("--to", type=Path, default=Path("docs/pictures/serve"))
    parser.add_argument("--only", nargs="*", default=[], help="names of scenes")
    parser.add_argument("--train", nargs="*", help="only train these runs; none: all")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.train is not None:
        train_runs(arguments.runs, arguments.train)
        return
    scenes = [scene for scene in SCENES if not arguments.only or scene.name in arguments.only]
    names = sorted({name for scene in scenes for name in (scene.run, scene.other) if name})
    take_pictures(serve_runs(train_runs(arguments.runs, names)), arguments.to, arguments.only)


if __name__ == "__main__":
    main()
