"""The documents build into a site, without warnings and without a network."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path

import pytest

import regard

ROOT = Path(__file__).parents[2]
PACKAGES = ("mkdocs", "material", "mkdocstrings")
LOADED = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src"}

pytestmark = pytest.mark.skipif(
    any(find_spec(package) is None for package in PACKAGES), reason="needs the docs extra"
)


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """Build the site once; --strict makes every warning an error."""
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", folder],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder


class LoadedFiles(HTMLParser):
    """The addresses that a browser loads to show a page, and the text of its paragraphs."""

    def __init__(self, html: str):
        super().__init__()
        self.addresses: list[str] = []
        self.paragraphs: list[str] = []
        self.inside = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        address = dict(attrs).get(LOADED.get(tag, ""))
        if address:
            self.addresses.append(address)
        if tag == "p":
            self.inside = True
            self.paragraphs.append("")

    def handle_endtag(self, tag: str) -> None:
        self.inside = self.inside and tag != "p"

    def handle_data(self, data: str) -> None:
        if self.inside:
            self.paragraphs[-1] += data


def external(addresses: list[str]) -> list[str]:
    return [address for address in addresses if re.match(r"(\w+:)?//", address)]


def broken_blocks(paragraphs: list[str]) -> list[str]:
    """Return paragraphs with a list, table or fence that GitHub shows and mkdocs does not."""
    return [text for text in paragraphs if re.search(r"^(- |1\. |\||```)", text, re.MULTILINE)]


def pages(site: Path) -> Iterator[tuple[str, LoadedFiles]]:
    for file in sorted(site.rglob("*.html")):
        yield str(file.relative_to(site)), LoadedFiles(file.read_text(encoding="utf-8"))


def test_every_document_is_a_page(site):
    documents = [*(ROOT / "docs").rglob("*.md"), ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md"]
    expected = {"index.html", "api.html"}
    for file in documents:
        folder = ROOT / "docs" if file.is_relative_to(ROOT / "docs") else ROOT
        expected.add(str(file.relative_to(folder).with_suffix(".html")))
    assert expected <= {name for name, _ in pages(site)}


def test_every_public_name_is_in_the_reference(site):
    page = (site / "api.html").read_text(encoding="utf-8")
    assert [name for name in regard.__all__ if f'id="regard.{name}"' not in page] == []


def test_nothing_comes_from_the_network(site):
    assert {name: found for name, page in pages(site) if (found := external(page.addresses))} == {}
    styles = [file.read_text(encoding="utf-8") for file in site.rglob("*.css")]
    assert styles
    assert not any(re.search(r"(@import|url\()\s*[\"']?(https?:)?//", text) for text in styles)


def test_lists_and_tables_are_rendered(site):
    assert {
        name: text for name, page in pages(site) if (text := broken_blocks(page.paragraphs))
    } == {}


def test_planted_faults_are_found():
    page = LoadedFiles(
        '<script src="https://x/y.js"></script><img src="z.png"><p>a:\n- <b>b</b></p>'
    )
    assert external(page.addresses) == ["https://x/y.js"]
    assert external(LoadedFiles('<link href="//fonts/x">').addresses) == ["//fonts/x"]
    assert broken_blocks(page.paragraphs) == ["a:\n- b"]
    assert not broken_blocks(["a - b", "1994-05-03"])
