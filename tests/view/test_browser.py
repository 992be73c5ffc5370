"""The page in a real browser, offline: mouse, keyboard, controls and downloads."""

import shutil

import numpy as np
import pytest

from regard.metrics.alignment_files import GoldAlignment
from regard.view.annotations import MapAnnotations, SearchTreeNode, TokenChoice
from regard.view.attention_map import AttentionMap
from regard.view.page import html_page, side_by_side_page, viewer_data
from regard.view.structure import clearest_head

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
playwright = pytest.importorskip("playwright.sync_api")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")

ATTACK = "</script><script>document.title='taken'</script>"
PNG = bytes.fromhex(  # one black dot
    "89504e470d0a1a0a0000000d49484452000000010000000108000000003a7e9b550000000a494441"
    "54789c636000000002000148afa4710000000049454e44ae426082"
)
TOKENS = ["[CLS]", "play", "##ing", ATTACK, "[SEP]"]


def weights(*shape: int) -> np.ndarray:
    draws = np.exp(3 * np.random.default_rng(7).normal(size=shape))
    return (draws / draws.sum(-1, keepdims=True)).astype(np.float32)


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"]
        )
        yield chromium
        chromium.close()


@pytest.fixture
def open_map(browser, tmp_path):
    """Open a map as a page from a file; check that nothing is logged or fetched."""
    context = browser.new_context(offline=True, accept_downloads=True)
    page, messages, fetched = context.new_page(), [], []
    page.on("console", lambda message: messages.append(message.text))
    page.on("pageerror", lambda error: messages.append(str(error)))
    page.on("request", lambda request: fetched.append(request.url))

    def open_page(attention: AttentionMap):
        attention.save(tmp_path / "map.html")
        page.goto((tmp_path / "map.html").as_uri())
        page.wait_for_selector("body[data-ready=yes]")
        return page

    yield open_page
    assert messages == []
    assert all(url.startswith(("file:", "blob:", "data:")) for url in fetched), fetched
    context.close()


@pytest.fixture
def page(open_map):
    return open_map(AttentionMap(weights(2, 3, 5, 5), TOKENS, title=f"a {ATTACK}"))


def status(page) -> str:
    return page.inner_text("[data-part=status]")


def test_a_token_is_text(page):
    assert page.title() == f"a {ATTACK}"
    assert ATTACK in page.inner_text("h1")
    assert page.locator("text >> nth=0").count() == 1


def test_the_mouse_shows_a_weight(page):
    page.select_option("[data-part=layer]", label="layer 2")
    page.select_option("[data-part=head]", label="3")
    box = page.locator("[data-part=view] canvas").bounding_box()
    cell = box["width"] / 5
    page.mouse.move(box["x"] + 4.5 * cell, box["y"] + 1.5 * cell)
    weight = float(weights(2, 3, 5, 5)[1, 2, 1, 4])
    text = status(page)
    assert text.startswith("“play” attends to “[SEP]”: ")
    assert float(text.split(": ")[1].rstrip(" %")) == pytest.approx(100 * weight, abs=1.0)
    lines = page.locator("[data-part=view] svg line")
    assert [lines.nth(n).get_attribute("visibility") for n in (0, 1)] == ["visible", "visible"]


def test_subwords_are_merged(page):
    assert page.text_content("[data-part=view] svg").count("##ing") >= 1
    page.check("[data-part=words]")
    labels = page.text_content("[data-part=view] svg")
    assert "playing" in labels
    assert "##ing" not in labels
    page.evaluate("document.querySelector('[data-part=table-of]').open = true")
    rows = page.locator("[data-part=table] tr").all_inner_texts()[1:]
    assert len(rows) == 4
    for row in rows:
        assert sum(map(float, row.split("\t")[1:])) == pytest.approx(1, abs=0.03)


def test_a_page_opens_on_the_sharpest_head(page, open_map):
    map_ = AttentionMap(weights(2, 3, 5, 5), TOKENS)
    layer, head, bits = clearest_head(map_)
    assert (page.input_value("[data-part=layer]"), page.input_value("[data-part=head]")) == (
        str(layer),
        str(head),
    )
    opening = f"The page opens on layer {layer + 1}, head {head + 1}, the sharpest of this map"
    assert page.inner_text("[data-part=opening]").startswith(opening)
    assert f"({bits:.2f} bits)" in page.inner_text("[data-part=opening]")
    page.select_option("[data-part=head]", "mean")
    assert page.inner_text("[data-part=opening]") == ""
    assert open_map(map_.pick(1, 1)).input_value("[data-part=head]") == "mean"


def test_the_keyboard(page):
    page.select_option("[data-part=layer]", "0")
    page.select_option("[data-part=head]", "mean")
    page.focus("[data-part=view]")
    page.keyboard.press("ArrowDown")
    assert page.input_value("[data-part=layer]") == "1"
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert page.input_value("[data-part=head]") == "0"
    page.keyboard.press("w")
    assert page.is_checked("[data-part=words]")
    page.keyboard.press("2")
    assert page.get_attribute("[data-part=tab-lines]", "aria-selected") == "true"
    page.keyboard.press("j")
    assert status(page).startswith("“playing” attends to ")
    page.keyboard.press("3")
    assert page.locator(".grid button").count() == 6
    page.keyboard.press("d")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"


def test_a_thumbnail_opens_its_head(page):
    page.click("[data-part=tab-model]")
    page.click("[aria-label='layer 2, head 3']")
    assert (page.input_value("[data-part=layer]"), page.input_value("[data-part=head]")) == (
        "1",
        "2",
    )
    assert page.get_attribute("[data-part=tab-matrix]", "aria-selected") == "true"


def test_lines_of_a_token(page):
    page.click("[data-part=tab-lines]")
    page.hover("[data-part=view] svg text >> nth=1")
    assert status(page).startswith("“play” attends to ")
    strokes = page.locator("[data-part=view] svg g line")
    assert 0 < strokes.count() <= 5


def test_find_marks_a_token(page):
    page.fill("[data-part=find]", "SEP")
    marked = page.locator("[data-part=view] svg text[fill='var(--mark)']")
    assert marked.count() == 2
    assert "[SEP]" in marked.nth(0).text_content()


@pytest.mark.parametrize(
    ("button", "begins"), [("[data-part=svg]", b"<svg"), ("[data-part=png]", b"\x89PNG")]
)
def test_the_matrix_can_be_saved(page, button, begins, tmp_path):
    with page.expect_download() as download:
        page.click(button)
    download.value.save_as(tmp_path / "saved")
    data = (tmp_path / "saved").read_bytes()
    assert data.startswith(begins)
    assert b"<script" not in data


def test_144_heads_of_512_tokens(open_map):
    tokens = [f"token{n}" for n in range(512)]
    page = open_map(AttentionMap(weights(12, 12, 512, 512), tokens))
    paint = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
    assert page.evaluate(paint) < 10_000  # 1.5 s on a quiet machine: benchmarks/page.py
    page.click("[data-part=tab-model]")
    assert page.locator(".grid button").count() == 144


def test_a_grid_and_its_image(open_map):
    table = np.array([[[0.1, 0.05], [0.5, 0.05]]], np.float32)
    rows, columns = ["row 1", "row 2"], ["column 1", "column 2"]
    grid = AttentionMap(table, rows, columns, kind="grid", image=PNG, reader="the class token")
    page = open_map(grid)
    assert status(page) == "The class token attends most to row 2, column 1: 50 %"
    assert "30 % on the class token itself" in page.inner_text("body")
    assert page.locator("img[src^='data:image/png;base64,']").count() == 1


def test_a_word_of_a_caption_attends_to_an_image(open_map):
    """A layer is a word: its weights sum to 1, and nothing else attends or is attended to."""
    table = np.full((1, 4, 4), 1 / 16, np.float32)
    sides = [f"row {n}" for n in range(1, 5)], [f"column {n}" for n in range(1, 5)]
    page = open_map(AttentionMap({"1 ring": table}, *sides, kind="grid", image=PNG))
    assert status(page) == "“1 ring” attends most to row 1, column 1: 6.3 %"
    body = page.inner_text("body")
    assert "class token" not in body
    assert "-0" not in body
    assert "bright is 25 %, equal weights would be 6.3 %" in body


ANNOTATIONS = MapAnnotations(
    GoldAlignment(frozenset({(0, 0), (1, 1)}), frozenset({(0, 0), (1, 1), (2, 1)})),
    tuple(
        (TokenChoice(token, 0.75), TokenChoice(ATTACK, 0.25))
        for token in ("▁ein", "▁H", "und", "</s>")
    ),
    (
        SearchTreeNode(-1, "▁ein", -0.1, is_on_best_path=True),
        SearchTreeNode(-1, ATTACK, -2.0, is_on_best_path=False),
        SearchTreeNode(0, "▁H", -0.5, is_on_best_path=True),
    ),
)


@pytest.fixture
def annotated_page(open_map):
    """A translation of "a dog runs" into "ein Hund"; both words attend to "dog"."""
    table = np.array([[0.1, 0.8, 0.1, 0], [0, 0.6, 0.4, 0], [0, 0.8, 0.2, 0], [0, 0, 0, 1]])
    queries, keys = ["▁ein", "▁H", "und", "</s>"], ["▁a", "▁dog", "▁runs", "</s>"]
    return open_map(AttentionMap(table, queries, keys, annotations=ANNOTATIONS))


def test_gold_links(annotated_page):
    assert "1 found (●), 1 false (✕), 1 missed; AER 0.500" in annotated_page.inner_text(
        "[data-part=gold]"
    )
    annotated_page.check("[data-part=words]")
    assert annotated_page.locator("[data-part=view] rect.gold").count() == 3
    assert annotated_page.locator("[data-part=view] rect.gold[stroke-dasharray]").count() == 1
    marks = annotated_page.locator("[data-part=view] svg text").all_text_contents()
    assert (marks.count("●"), marks.count("✕")) == (1, 1)


def test_steps(annotated_page):
    annotated_page.keyboard.press("4")
    assert annotated_page.get_attribute("[data-part=tab-steps]", "aria-selected") == "true"
    assert annotated_page.inner_text(".steps .now") == "▁ein"
    annotated_page.keyboard.press("j")
    assert annotated_page.inner_text(".steps .now") == "▁H"
    choices = annotated_page.inner_text(".choices")
    assert "75 %" in choices
    assert ATTACK in choices
    assert annotated_page.inner_text(".choices .chosen") == "▁H"
    annotated_page.click(".steps button >> nth=3")
    assert status(annotated_page).startswith("“</s>” attends to “</s>”")


def test_the_tree_of_a_search(annotated_page):
    annotated_page.keyboard.press("5")
    nodes = annotated_page.locator("[data-part=view] svg text")
    assert nodes.count() == 3
    assert annotated_page.locator("[data-part=view] svg path").count() == 1
    assert "log p -0.50" in nodes.nth(2).text_content()


def test_tabs_without_annotations_are_hidden(page):
    assert not page.is_visible("[data-part=tab-steps]")
    assert not page.is_visible("[data-part=tab-tree]")
    page.keyboard.press("4")
    assert page.get_attribute("[data-part=tab-matrix]", "aria-selected") == "true"


def test_side_by_side(browser, tmp_path):
    """Two viewers on one page: keys of one leave the other as it is."""
    attention = AttentionMap(weights(3, 5, 5), TOKENS)
    (tmp_path / "both.html").write_text(
        side_by_side_page([("first", attention), (ATTACK, attention)]), "utf-8"
    )
    context = browser.new_context(offline=True)
    page, messages = context.new_page(), []
    page.on("console", lambda message: messages.append(message.text))
    page.goto((tmp_path / "both.html").as_uri())
    page.wait_for_selector("body[data-ready=yes]")
    first, second = (page.locator(".viewer").nth(number) for number in (0, 1))
    for viewer in (first, second):
        viewer.locator("[data-part=head]").select_option("mean")
    first.locator("[data-part=view]").press("ArrowRight")
    heads = [viewer.locator("[data-part=head]").input_value() for viewer in (first, second)]
    assert heads == ["max", "mean"]
    assert page.title() == "Side by side"
    assert page.locator("h2").all_inner_texts() == ["first", ATTACK]
    assert messages == []
    context.close()


CONTRACT = """async (data) => {
  const container = document.createElement("div"), events = [];
  document.body.append(container);
  const viewer = createViewer(container, data, {
    actions: [{ label: "Act", run: (selection) => events.push(["act", selection]) }],
    onSelect: (selection) => events.push(["select", selection]),
  });
  await viewer.ready;
  viewer.select(3);
  [...container.querySelectorAll("button")].find((node) => node.textContent === "Act").click();
  await viewer.show(data);
  const { layer, head } = viewer.state();
  viewer.destroy();
  return { events, layer, head, left: container.childNodes.length };
}"""


def test_a_page_can_embed_a_viewer(page):
    result = page.evaluate(CONTRACT, viewer_data(AttentionMap(weights(2, 3, 5, 5), TOKENS)))
    ((kind, selection),) = [event for event in result["events"] if event[0] == "act"]
    assert (kind, selection["query"]) == ("act", 3)
    assert (selection["layer"], selection["head"]) == (result["layer"], result["head"])
    assert result["left"] == 0


def test_a_script_that_is_not_ours_is_blocked(browser, tmp_path):
    page = browser.new_page()
    text = html_page(AttentionMap(weights(1, 5, 5), TOKENS, TOKENS))
    foreign = '<script>document.title = 1</script><img src=x onerror="document.title = 1">'
    (tmp_path / "map.html").write_text(text.replace("<main>", f"<main>{foreign}"))
    page.goto((tmp_path / "map.html").as_uri())
    page.wait_for_selector("body[data-ready=yes]")
    assert page.title() == "attention"
    page.close()
