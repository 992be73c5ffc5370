"""The page in a real browser, offline: mouse, keyboard, controls and downloads."""

import os
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


def head(page) -> tuple[str, str]:
    """The layer and the head that are selected."""
    return page.input_value("[data-part=layer]"), page.input_value("[data-part=head]")


def view(page) -> str:
    return page.get_attribute("[data-part=view]", "data-view")


def use_subwords(page) -> None:
    page.click("[data-words=no]")


def test_a_token_is_text(page):
    assert page.title() == f"a {ATTACK}"
    assert ATTACK in page.inner_text("h1")
    assert ATTACK in page.text_content(".stage .labels")


def test_the_mouse_shows_a_weight(page):
    page.select_option("[data-part=layer]", label="Layer 2")
    page.select_option("[data-part=head]", label="3")
    use_subwords(page)
    row = page.locator(".labels [data-row='1']").bounding_box()
    column = page.locator(".labels [data-column='4']").bounding_box()
    page.mouse.move(column["x"] + 6, row["y"] + row["height"] / 2)
    weight = float(weights(2, 3, 5, 5)[1, 2, 1, 4])
    text = status(page)
    assert text.startswith("“play” attends to “[SEP]”: ")
    assert float(text.split(": ")[1].rstrip(" %")) == pytest.approx(100 * weight, abs=1.0)
    assert page.inner_text(".row-title") == "“play” attends to"
    numbers = page.locator(".bars .number").all_inner_texts()
    assert sum(float(number.strip("< %")) for number in numbers) == pytest.approx(100, abs=2)


def test_words_first_and_subwords_one_click_away(page):
    labels = page.text_content(".stage .labels")
    assert "playing" in labels
    assert "##" not in labels
    use_subwords(page)
    labels = page.text_content(".stage .labels")
    assert "·ing" in labels
    assert "##" not in labels
    page.click("[data-words=yes]")
    page.click("summary:text('Table')")
    page.wait_for_selector("[data-part=numbers] tbody")
    rows = page.locator("[data-part=numbers] tbody tr").all_inner_texts()
    assert len(rows) == 4
    for row in rows:
        assert sum(map(float, row.split("\t")[1:])) == pytest.approx(1, abs=0.03)


def test_characters_are_not_merged_first(open_map):
    tokens = [*"▁2026", "</s>"]
    page = open_map(AttentionMap(weights(6, 6), tokens, word_ids=([0] * 5 + [1],) * 2))
    assert page.locator(".labels [data-row]").count() == 6
    assert "each character looks" in page.inner_text("[data-part=lead]").lower()
    assert "Each row is a character" in page.inner_text("[data-part=opening]")


def test_a_page_opens_on_the_sharpest_head_and_says_why(page):
    map_ = AttentionMap(weights(2, 3, 5, 5), TOKENS)
    layer, sharpest, _ = clearest_head(map_)
    assert head(page) == (str(layer), str(sharpest))
    name = f"Layer {layer + 1}, head {sharpest + 1}: "
    assert page.inner_text("[data-part=lead]").startswith(name)
    reading = "Each row is a word; darker cells are the words that it looks at more."
    reason = "The page opens on the sharpest of 6 heads"
    assert page.inner_text("[data-part=opening]").startswith(f"{reading} {reason}")
    page.select_option("[data-part=head]", "mean")
    assert page.inner_text("[data-part=opening]") == reading
    assert "mean of 3 heads" in page.inner_text("[data-part=lead]")


def test_the_scale_is_labeled(page):
    ticks = page.locator("[data-part=scale] text").all_text_contents()
    assert "0 %" in ticks
    assert "even: 25 %" in ticks  # of four words
    top = max(float(weight) for weight in weights(2, 3, 5, 5).flat)
    assert any(tick.startswith(f"{100 * top:.0f} %") for tick in ticks)


def test_nearly_equal_weights_are_pale(open_map):
    """The strongest color is at least four times an even weight."""
    page = open_map(AttentionMap(np.full((1, 8, 8), 1 / 8), [f"w{n}" for n in range(8)]))
    assert "50 %" in page.locator("[data-part=scale] text").all_text_contents()


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
    assert page.get_attribute("[data-words=no]", "aria-pressed") == "true"
    page.keyboard.press("w")
    page.keyboard.press("2")
    assert view(page) == "lines"
    page.keyboard.press("k")
    page.keyboard.press("j")
    assert status(page).startswith("“playing” attends to ")
    page.keyboard.press("l")
    assert status(page).startswith("“playing” attends to “[CLS]”: ")
    page.keyboard.press("4")
    assert page.locator(".overview .head").count() == 6
    page.keyboard.press("d")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"


def test_a_thumbnail_opens_its_head(page):
    page.click("[data-view=heads]")
    page.click(".overview [aria-label^='Layer 2, Head 3']")
    assert head(page) == ("1", "2")
    assert view(page) == "matrix"
    page.click(".miniature [aria-label^='Layer 1, Head 1']")
    assert head(page) == ("0", "0")


def test_heads_have_entropy_and_role(open_map):
    previous = np.eye(6, k=-1) + np.outer(np.arange(6) == 0, np.arange(6) == 0)
    even = np.full((6, 6), 1 / 6)
    page = open_map(AttentionMap(np.stack([previous, even])[None], list("abcdef")))
    page.click("[data-view=heads]")
    captions = page.locator(".overview .caption").all_inner_texts()
    assert captions[0].split("\n") == ["Head 1", "prev. 83 %", "0.0 bits", "sharpest"]
    assert captions[1].split("\n") == ["Head 2", "2.6 bits"]


def test_lines_of_a_word(page):
    page.click("[data-view=lines]")
    page.hover(".lines [data-row='1']")
    assert status(page).startswith("“playing” attends to ")
    assert "".join(page.locator(".lines .number").all_text_contents())
    page.hover(".lines [data-column='2']")
    assert "is attended to by" in status(page)


def test_only_lines_above_the_threshold_are_drawn(page):
    page.click("[data-view=lines]")
    first = page.locator(".lines path").count()
    assert 0 < first <= 8  # two for each of four words
    page.locator("[data-part=threshold]").fill("95")
    assert page.locator(".lines path").count() < first
    assert "95 %: " in page.inner_text("[data-part=threshold-text]")


def test_find_marks_a_token(page):
    page.fill("[data-part=find]", "SEP")
    marked = page.locator(".labels text[text-decoration=underline]")
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
    if begins == b"<svg":  # title, sentence, labels and scale
        text = data.decode()
        assert all(
            part in text for part in ("&lt;/script", "Each row is a word", "playing", "even")
        )


def test_144_heads_of_512_tokens(open_map, tmp_path):
    tokens = [f"token{n}" for n in range(512)]
    page = open_map(AttentionMap(weights(12, 12, 512, 512), tokens))
    assert (tmp_path / "map.html").stat().st_size < 5_000_000
    paint = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
    assert page.evaluate(paint) < 10_000  # 1.5 s on a quiet machine: benchmarks/page.py
    assert page.locator(".labels text").count() < 200  # only visible ones
    for _ in range(8):
        page.keyboard.press("+")
    page.locator("[data-part=view]").evaluate("node => { node.scrollTop = node.scrollHeight }")
    page.wait_for_selector(".labels [data-row='511']")
    page.click("[data-view=heads]")
    assert page.locator(".overview .head").count() == 144


def test_a_grid_and_its_image(open_map):
    table = np.array([[[0.1, 0.05], [0.5, 0.05]]], np.float32)
    rows, columns = ["row 1", "row 2"], ["column 1", "column 2"]
    grid = AttentionMap(table, rows, columns, kind="grid", image=PNG, reader="the class token")
    page = open_map(grid)
    assert status(page) == "The class token attends most to row 2, column 1: 50 %"
    assert "The class token keeps 30 % for itself." in page.inner_text("[data-part=statistics]")
    assert page.locator(".large canvas").count() == 1
    page.hover(".large canvas", position={"x": 5, "y": 5})
    assert status(page) == "Row 1, column 1: 10 %"


def test_words_of_a_caption_look_at_an_image(open_map):
    """A layer is a word: no menu calls it a layer, and nothing else attends or is attended to."""
    tables = {"1 a": np.full((1, 4, 4), 1 / 16), "2 ring": np.eye(16)[5].reshape(1, 4, 4)}
    sides = [f"row {n}" for n in range(1, 5)], [f"column {n}" for n in range(1, 5)]
    page = open_map(AttentionMap(tables, *sides, kind="grid", image=PNG))
    assert "While it writes “ring”" in page.inner_text("[data-part=lead]")
    assert status(page) == "“ring” attends most to row 2, column 2: 100 %"
    assert page.locator(".strip .frame").all_inner_texts() == ["a", "ring"]
    page.keyboard.press("k")
    assert status(page) == "“a” attends most to row 1, column 1: 6.3 %"
    page.keyboard.press("p")
    assert page.inner_text("[data-part=play]") == "❚❚ Pause"
    page.wait_for_selector("[data-part=lead]:has-text('ring')")
    page.click("[data-part=play]")
    body = page.inner_text("body")
    assert "class token" not in body
    assert "Layer" not in body
    assert "-0" not in body


def test_a_pooled_text_is_shaded(open_map):
    document = np.array([[0.9, 0.1, 0, 0], [0, 0, 0.5, 0.5]], np.float32)
    names = ["sentence 1: 80%", "sentence 2: 20%"]
    page = open_map(AttentionMap(document, names, ["good", "film", "we", "slept"], kind="pool"))
    assert view(page) == "text"
    lines = page.locator(".pooled .running").all_inner_texts()
    assert [line.split() for line in lines] == [["good", "film"], ["we", "slept"]]


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
    text = annotated_page.inner_text("[data-part=gold]")
    assert "1 found (●), 1 false (✕), 1 missed; AER 0.500" in text
    assert annotated_page.locator(".labels rect.gold").count() == 3
    assert annotated_page.locator(".labels rect.gold[stroke-dasharray]").count() == 1
    marks = annotated_page.locator(".labels text.link").all_text_contents()
    assert sorted(marks) == ["●", "✕"]


def test_steps_with_alternatives(annotated_page):
    annotated_page.keyboard.press("3")
    use_subwords(annotated_page)
    chosen = annotated_page.locator(".query[aria-pressed=true]")
    assert chosen.inner_text() == "ein"
    annotated_page.keyboard.press("j")
    assert chosen.inner_text() == "H"
    choices = annotated_page.inner_text(".choices")
    assert "75 %" in choices
    assert ATTACK in choices
    assert annotated_page.inner_text(".choices .chosen span >> nth=0") == "H"
    annotated_page.click(".query >> nth=3")
    assert status(annotated_page).startswith("“</s>” attends to “</s>”")


def test_a_language_model_predicts_the_next_token(open_map):
    table = np.tril(np.ones((3, 3))) / np.array([[1], [2], [3]])
    choices = tuple((TokenChoice(token, 0.6),) for token in ("b", "c", "d"))
    map_ = AttentionMap(table, list("abc"), annotations=MapAnnotations(choices=choices))
    page = open_map(map_)
    page.keyboard.press("3")
    assert page.inner_text(".choices-row .heading") == "Likeliest after “a”"
    assert page.inner_text(".choices .chosen span >> nth=0") == "b"


def test_the_tree_of_a_search(annotated_page):
    annotated_page.keyboard.press("4")
    nodes = annotated_page.locator(".stage svg text >> visible=true")
    assert [text for text in nodes.all_text_contents() if text.startswith("Step")] == [
        "Step 1",
        "Step 2",
    ]
    assert annotated_page.locator(".stage svg path").count() == 1
    assert "log p -0.50" in nodes.last.text_content()


def test_views_that_a_map_does_not_have_are_left_out(page):
    names = page.locator("[data-part=views] button").all_inner_texts()
    assert names == ["Matrix", "Lines", "Text", "All heads"]
    page.keyboard.press("5")
    assert view(page) == "matrix"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_narrow_and_accessible(browser, tmp_path, scheme):
    """No sideways scroll on a phone; axe finds nothing serious, if REGARD_AXE is its script."""
    map_ = AttentionMap(weights(2, 2, 5, 5), TOKENS, title="a title that is long " * 9)
    map_.save(tmp_path / "map.html")
    context = browser.new_context(
        bypass_csp=True, color_scheme=scheme, viewport={"width": 360, "height": 740}
    )
    page = context.new_page()
    page.goto((tmp_path / "map.html").as_uri())
    page.wait_for_selector("body[data-ready=yes]")
    names = page.locator("[data-part=views] button").all_inner_texts()
    for number, name in enumerate(names, 1):
        page.keyboard.press(str(number))
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, name
        assert axe_violations(page) == [], name
    assert page.locator("h1").bounding_box()["height"] < 40
    context.close()


def axe_violations(page) -> list[str]:
    script = os.environ.get("REGARD_AXE")
    if script is None:
        return []
    page.add_script_tag(path=script)
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
    return [
        f"{item['id']}: {item['nodes'][0]['html']}"
        for item in found
        if item["impact"] in ("serious", "critical")
    ]


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
    assert page.locator("section > h2").all_inner_texts() == ["first", ATTACK]
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
