"""The page at /, in a real browser, for every task: answers, attention, edits, keyboard, phones.

With REGARD_AXE, the path of axe.min.js, its rules are checked too.
"""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from serve.conftest import LiveServer
from support.examples import example_runs

import regard
from regard.explain.counterfactual import predict_edited
from regard.tasks.catalogue import TASKS

CHROMIUM, AXE = shutil.which("chromium"), os.environ.get("REGARD_AXE")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
NAMES = [*TASKS, "fold-distances"]
RUNS = [*NAMES, "music-tunes"]
WRITERS = ("translate", "summarize", "language", "chat", "caption")
DESKTOP, PHONE = {"width": 1280, "height": 800}, {"width": 360, "height": 740}
# what a task's answer has, besides the answer itself
PARTS = {
    "classify": ".bars .bar.best",
    "image": ".bars .bar.best",
    "tag": ".spans",
    "understand": ".intent",
    "answer": ".context",
    "chat": ".bubble.model",
    "pretrain": ".blank .bar",
    "music": "svg.roll .note",
    "copy": "svg.bits .now",
    "recall": "svg.bits .now",
    "bandit": "svg.episode .now",
    "fewshot": "svg.points",
    "fold": ".residue",
    "fold-distances": "svg.distances",
}


def fit_numbers(folder: Path) -> None:
    """Train a translator of number words, until it knows what to attend to."""
    digits = {"one": "1", "two": "2", "three": "3", "four": "4"}
    regard.fit(
        "translate",
        [
            {"source": f"{a} {b}", "target": f"{digits[a]} {digits[b]}"}
            for a in digits
            for b in digits
        ],
        {"kind": "rnnsearch", "dim": 16, "hidden_dim": 16},
        steps=100,
        folder=folder / "run",
        settings={
            "data": {"held_out": 0},
            "text": {"kind": "words"},
            "train": {"learning_rate": 0.02, "examples_per_batch": 16},
            "decode": {"kind": "greedy", "max_length": 4},
        },
        progress=False,
    )


@pytest.fixture(scope="session")
def task_runs(shared) -> dict[str, regard.Run]:
    folder_of = example_runs(shared)
    folders = {name: folder_of(name) for name in RUNS}
    folders["numbers"] = shared("served-numbers", fit_numbers)
    return {name: regard.load(folder / "run") for name, folder in folders.items()}


@pytest.fixture(scope="session")
def task_server(task_runs):
    with LiveServer(task_runs) as live:
        yield live


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser, task_server):
    """`open_page("tag")`: a page that must stay silent, and ask no other host."""
    messages, hosts, contexts = [], set(), []

    def open_run(name: str, *, address: str | None = None, scheme: str = "light"):
        context = browser.new_context(viewport=DESKTOP, color_scheme=scheme, bypass_csp=bool(AXE))
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(120_000)
        page.on("console", lambda message: messages.append(message.text))
        page.on("pageerror", lambda error: messages.append(str(error)))
        page.on("request", lambda request: hosts.add(request.url.split("/")[2]))
        page.goto(address or f"{task_server.url}/#run={name}")
        page.wait_for_selector("#examples:not([disabled])")
        return page

    yield open_run
    for context in contexts:
        context.close()
    assert messages == []
    assert hosts <= {f"127.0.0.1:{task_server.port}", ""}


def take_example(page) -> dict[str, Any]:
    """Ask for the first example; return the data of its attention map."""
    with page.expect_response(lambda answer: "/attention" in answer.url) as answer:
        page.select_option("#examples", "0")
    wait_for_answer(page)
    return answer.value.json()


def wait_for_answer(page) -> None:
    page.wait_for_selector(".tools:not([hidden])")
    page.wait_for_selector(".viewer-box[data-ready=yes]")
    assert page.inner_text("#error") == ""


def scroll_width(page) -> int:
    return page.evaluate("document.documentElement.scrollWidth")


@pytest.mark.parametrize("name", NAMES)
def test_every_task_by_mouse_on_a_desk_and_a_phone(name, open_page):
    """An answer with its parts, attention on hover, an alternative, a head that is off."""
    page = open_page(name)
    attention = take_example(page)
    assert page.locator(".result").inner_text().strip()
    if name in PARTS:
        assert page.locator(f".result {PARTS[name]}").count() > 0
    check_hover(page, attention)
    if name in WRITERS:
        check_alternatives(page)
    page.locator("summary", has_text="Switch heads off").click()
    page.locator(".head").first.click()
    page.wait_for_selector(".before-after[aria-busy=false]")
    assert page.locator(".before-after h3").count() >= 2
    assert "off" in page.inner_text(".chips .chip")
    check_axe(page)
    page.set_viewport_size(PHONE)
    page.emulate_media(color_scheme="dark")
    assert scroll_width(page) <= PHONE["width"]
    check_axe(page)


def check_hover(page, attention: dict[str, Any]) -> None:
    """Point at parts of the answer: the viewer says what the row of each one attends to."""
    if attention["kind"] == "pool" or (attention["kind"] == "grid" and not attention["choices"]):
        check_hover_of_one_row(page, attention)
        return
    parts, names = page.locator(".result [data-query]"), row_names(attention)
    for index in {0, parts.count() // 2, parts.count() - 1}:
        page.mouse.move(0, 0)
        parts.nth(index).hover(force=True)  # parts of drawings may lie under a frame
        name = names[int(parts.nth(index).get_attribute("data-query"))]
        status = page.inner_text(".viewer-box [role=status]")
        assert status.startswith(f"“{name}” "), (name, status)


def row_names(attention: dict[str, Any]) -> list[str]:
    """Return what the viewer calls the rows; those of a caption are the words of the output."""
    if attention["kind"] == "grid":
        return [layer["name"] for layer in attention["layers"]]
    queries = attention["queries"]
    return [queries["words"][word] for word in queries["word"]]


def check_hover_of_one_row(page, attention: dict[str, Any]) -> None:
    """Point at words of the text, or at regions of the picture: the viewer says their weights."""
    parts = page.locator(".viewer-box .pooled .word")
    if attention["kind"] == "grid":
        parts = page.locator(".viewer-box .large canvas")
    for part in (parts.first, parts.last):
        before = page.inner_text(".viewer-box [role=status]")
        part.hover(position={"x": 3, "y": 3})
        status = page.inner_text(".viewer-box [role=status]")
        name = part.inner_text() if attention["kind"] == "pool" else "Row 1, column 1"
        assert name in status
        assert status.endswith(" %")
        page.mouse.move(0, 0)
        assert page.inner_text(".viewer-box [role=status]") == before


def check_alternatives(page) -> None:
    """Click a word of the output, and let the model go on from another one."""
    word = page.locator(".linked .word").first
    word.click()
    choices = page.locator("#menu button:not(.current)")
    assert choices.count() > 0
    with page.expect_response(lambda response: response.url.endswith("/predict")) as answer:
        choices.first.click()
    assert answer.value.request.post_data_json["prefix"]
    page.wait_for_selector(".result[aria-busy=false]")
    page.wait_for_selector(".linked .word")
    assert page.inner_text("#error") == ""


@pytest.mark.parametrize("name", NAMES)
def test_every_task_by_keyboard(name, open_page):
    page = open_page(name, scheme="dark")
    focus_by_tab(page, "#examples")
    page.keyboard.press("ArrowDown")
    wait_for_answer(page)
    focus_by_tab(page, ".edits summary")
    page.keyboard.press("Enter")
    focus_by_tab(page, ".head")
    page.keyboard.press("Enter")
    page.wait_for_selector(".before-after[aria-busy=false]")
    focus_by_tab(page, ".viewer-box *")
    if name in WRITERS:
        page.locator(".linked .word").first.focus()
        page.keyboard.press("Enter")
        page.wait_for_selector("#menu")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Escape")
        assert page.locator("#menu").count() == 0
        assert page.evaluate("document.activeElement.classList.contains('word')")


def focus_by_tab(page, selector: str) -> None:
    for _ in range(120):
        page.keyboard.press("Tab")
        if page.evaluate("(s) => document.activeElement.matches(s)", selector):
            return
    raise AssertionError(f"the Tab key never reaches {selector}")


def check_axe(page) -> None:
    if AXE is None:
        return
    page.evaluate("window.axe || 0") or page.add_script_tag(content=Path(AXE).read_text("utf-8"))
    found = page.evaluate("axe.run().then((result) => result.violations)")
    serious = [
        (item["id"], item["impact"], [node["html"] for node in item["nodes"]])
        for item in found
        if item["impact"] in ("serious", "critical")
    ]
    assert serious == []


def test_a_link_restores_run_input_comparison_and_head(open_page):
    page = open_page("tag")
    page.fill("#field-text", "eve saw ann")
    page.press("#field-text", "Enter")
    wait_for_answer(page)
    page.select_option("#other", "understand")
    page.wait_for_selector(".pane:nth-child(2) .viewer-box[data-ready=yes]")
    assert page.locator(".pane").count() == 2
    assert page.locator(".pane .spans").count() == 2
    other = open_page("tag", address=page.url)
    other.wait_for_selector(".pane:nth-child(2) .viewer-box[data-ready=yes]")
    assert other.input_value("#field-text") == "eve saw ann"
    assert other.locator(".pane .spans").count() == 2
    other.set_viewport_size(PHONE)
    assert scroll_width(other) <= PHONE["width"]


def test_a_forced_link_changes_the_translation(open_page, task_runs):
    """The digit of the first word is written while the model attends to the second word only."""
    page = open_page("numbers")
    page.fill("#field-source", "one two")
    page.click("#go")
    wait_for_answer(page)
    page.locator(".linked .word").first.hover()
    page.locator(".viewer-box .stage").focus()
    page.keyboard.press("l")
    page.keyboard.press("l")
    with page.expect_request("**/counterfactual") as request:
        page.get_by_role("button", name="Force this link").click()
    assert request.value.post_data_json["force"] == ["1->two"]
    page.wait_for_selector(".before-after[aria-busy=false]")
    original, edited = predict_edited(task_runs["numbers"], {"source": "one two"}, [], ["1->two"])
    assert page.locator(".before-after .answer").all_inner_texts() == [original.text, edited.text]
    assert [original.text, edited.text] == ["1 2", "2 2"]
    assert page.inner_text(".before-after del") == "1"
    assert page.inner_text(".before-after ins") == "2"


def test_a_conversation_goes_on_and_starts_again(open_page):
    from playwright.sync_api import expect

    expect.set_options(timeout=120_000)

    page = open_page("chat")
    for count in (2, 4):
        page.fill("#field-turns", "ann bob")
        page.press("#field-turns", "Enter")
        expect(page.locator(".bubble")).to_have_count(count)
        wait_for_answer(page)
        expect(page.locator("#field-turns")).to_have_value("")
    page.get_by_role("button", name="New chat").click()
    assert page.locator(".bubble").count() == 0


def test_a_picture_is_drawn(open_page):
    page = open_page("image")
    page.get_by_role("button", name="Draw", exact=True).click()
    page.locator("canvas.pad").click(position={"x": 60, "y": 60})
    page.keyboard.press("Shift+ArrowRight")
    page.click("#go")
    wait_for_answer(page)
    assert page.locator(".bar.best").count() == 1


def test_keys_write_chords_and_actions_go_on(open_page):
    page = open_page("music")
    page.fill("#field-beginning", "")
    for pitch in (60, 64):
        page.locator(f"[data-pitch='{pitch}']").click()
    assert page.input_value("#field-beginning") == "[[60,64]]"
    page.click("#go")
    wait_for_answer(page)
    page.select_option("#run", "bandit")
    page.get_by_label("Action 2 won").click()
    page.wait_for_selector(".bar.best")
    assert page.input_value("#field-history") == "2:1"


def test_a_tune_is_a_piano_roll(open_page):
    page = open_page("music-tunes")
    page.fill("#field-beginning", "M:4/4\nL:1/4\nK:C\nCDEF|GABc|")
    page.locator("[data-pitch='60']").click()
    assert page.input_value("#field-beginning").endswith("|C")
    page.fill("#field-beginning", "M:4/4\nL:1/4\nK:C\nCDEF|GABc|")
    page.click("#go")
    wait_for_answer(page)
    assert page.locator("svg.roll .note").count() >= 8


def test_history_picture_and_errors(open_page):
    page = open_page("classify")
    page.fill("#field-text", "")
    page.click("#go")
    assert "missing" in page.inner_text("#error")
    page.fill("#field-text", "bob cat")
    page.click("#go")
    wait_for_answer(page)
    page.fill("#field-text", "")
    page.select_option("#history", "0")
    assert page.input_value("#field-text") == "bob cat"
    wait_for_answer(page)
    with page.expect_download() as download:
        page.get_by_role("button", name="Save picture").click()
    assert Path(download.value.path()).read_bytes().startswith(b"\x89PNG")
