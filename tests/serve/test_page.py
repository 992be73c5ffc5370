"""The page at /, in a real browser: answers, attention, edits, keyboard, small screens."""

import shutil

import pytest

CHROMIUM = shutil.which("chromium")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def page(browser, server):
    """A page that must stay silent, and ask no other host."""
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    messages, hosts = [], set()
    page.on("console", lambda message: messages.append(message.text))
    page.on("pageerror", lambda error: messages.append(str(error)))
    page.on("request", lambda request: hosts.add(request.url.split("/")[2]))
    page.goto(f"{server.url}/")
    page.wait_for_selector("#run option", state="attached")
    yield page
    page.close()
    assert messages == []
    assert hosts <= {f"127.0.0.1:{server.port}", ""}


def predict(page, run: str, field: str, text: str) -> None:
    page.select_option("#run", run)
    page.fill(f"#field-{field}", text)
    page.press(f"#field-{field}", "Control+Enter")
    page.wait_for_selector("#raw:not([hidden])", timeout=60_000)


def test_an_answer_with_its_attention(page, runs):
    predict(page, "translator", "source", "the cat sat")
    assert page.inner_text("#output .answer") == (
        runs["translator"]("the cat sat").text or "(empty)"
    )
    page.wait_for_selector("#map svg", timeout=60_000)
    token = page.locator("#reading button").first
    token.hover()
    assert token.get_attribute("aria-pressed") == "true"
    assert page.locator("#reading span.token").first.get_attribute("title").endswith("%")
    page.click("#ablate")
    page.wait_for_selector("#counterfactual .pair", timeout=60_000)


def test_classes_are_bars_and_conversations_are_bubbles(page, runs):
    predict(page, "judge", "text", "the dog ran")
    assert page.locator(".bar").count() == 2
    predict(page, "talker", "turns", "the cat sat")
    assert page.locator(".bubble").count() == 2


def test_a_link_restores_the_input(page, browser, server):
    predict(page, "judge", "text", "a bird sang")
    other = browser.new_page()
    other.goto(page.url)
    other.wait_for_selector(".bar", timeout=60_000)
    assert other.input_value("#field-text") == "a bird sang"
    other.close()


def test_an_error_is_shown(page):
    page.select_option("#run", "translator")
    page.click("#go")
    page.wait_for_selector("#error:not([hidden])", timeout=60_000)
    assert "missing" in page.inner_text("#error")
