"""A page of 144 heads over 512 tokens: how large, how long it takes, how soon it is seen.

    python benchmarks/page.py [--tokens 512] [--bertviz]

With --bertviz, the same weights by its model view (pip install bertviz). With playwright and
Debian's chromium, the time to the first paint of our page, and what its console says.
"""

import argparse
import shutil
import tempfile
import time
from pathlib import Path

import numpy as np

from regard.view.attention_map import AttentionMap

LAYERS = HEADS = 12


def attention(tokens: int) -> np.ndarray:
    """As sharp as a trained model's: most of a row's weight lies on a few keys."""
    draws = np.random.default_rng(0).normal(size=(LAYERS, HEADS, tokens, tokens))
    weights = np.exp(3 * draws.astype(np.float32))
    return weights / weights.sum(-1, keepdims=True)


def ours(weights: np.ndarray, tokens: list[str], path: Path) -> float:
    began = time.perf_counter()
    AttentionMap(weights, tokens).save(path)
    return time.perf_counter() - began


def theirs(weights: np.ndarray, tokens: list[str], path: Path) -> float:
    import torch
    from bertviz import model_view

    layers = [torch.from_numpy(layer)[None] for layer in weights]
    began = time.perf_counter()
    page = model_view(layers, tokens, html_action="return")
    path.write_text(page.data, encoding="utf-8")
    return time.perf_counter() - began


def paint(path: Path) -> str:
    """Seconds until something is seen, and until it can be used."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_context(offline=True).new_page()
        said: list[str] = []
        page.on("console", lambda one: said.append(one.text))
        began = time.perf_counter()
        page.goto(path.as_uri())
        page.wait_for_selector("body[data-ready=yes]")
        ready = time.perf_counter() - began
        first = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
        browser.close()
    return f"first paint {first / 1000:.2f} s, ready {ready:.2f} s, console: {said or 'silent'}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokens", type=int, default=512)
    parser.add_argument("--bertviz", action="store_true")
    given = parser.parse_args()
    weights, tokens = attention(given.tokens), [f"token{n}" for n in range(given.tokens)]
    with tempfile.TemporaryDirectory() as folder:
        makers = {"regard": ours} | ({"bertviz": theirs} if given.bertviz else {})
        for name, make in makers.items():
            path = Path(folder) / f"{name}.html"
            seconds = make(weights, tokens, path)
            print(f"{name:8} {path.stat().st_size / 1e6:9.1f} MB {seconds:7.1f} s")
        if shutil.which("chromium"):
            print(paint(Path(folder) / "regard.html"))


if __name__ == "__main__":
    main()
