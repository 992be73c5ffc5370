"""Hooks of mkdocs: add the pages that are not in docs/ to the site, and fill its navigation."""

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

import regard

ROOT = Path(__file__).parents[1]
# File of the repository -> page of the site.
ADDED = {
    "README.md": "index.md",
    "CHANGELOG.md": "CHANGELOG.md",
    "CONTRIBUTING.md": "CONTRIBUTING.md",
    "LICENSE": "LICENSE",
}
WIDE = {"results.md", "catalogue.md"}  # pages with wide tables have no column of navigation
LINK = re.compile(r"(\]\()([^)\s#:]+)((?:#[^)\s]*)?\))")
FENCE = re.compile(r"^```sh (no-run|in=copy)$", re.MULTILINE)
FILE_FENCE = re.compile(r"^```(\w+) (?:file|append)=(\S+)$", re.MULTILINE)
API = """# API

The public names of `regard`. They are imported when they are first used: `import regard` alone
loads neither torch nor numpy.

"""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Replace each folder in the navigation by its pages, in the order of their names."""
    for section in config.nav or []:
        for title, target in section.items():
            if isinstance(target, str) and target.endswith("/"):
                section[title] = [target + page.name for page in folder_pages(target)]
    return config


def folder_pages(folder: str) -> list[Path]:
    return sorted((ROOT / "docs" / folder).glob("*.md"))


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add README, CHANGELOG, CONTRIBUTING, LICENSE and the page of the API."""
    for source, page in ADDED.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text("utf-8")))
    files.append(File.generated(config, "api.md", content=api_page()))
    return files


def api_page() -> str:
    """Return the page of the API: one entry of mkdocstrings for each name of `regard.__all__`."""
    return API + "\n\n".join(f"::: regard.{name}" for name in sorted(regard.__all__, key=str.lower))


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Rewrite links for the places of the site, and the marks of code blocks."""
    path = page.file.src_uri
    if path in WIDE:
        page.meta["hide"] = ["navigation"]
    sources = {target: source for source, target in ADDED.items()}
    here = posixpath.dirname(sources.get(path, f"docs/{path}"))
    markdown = FILE_FENCE.sub(r'```\1 title="\2"', FENCE.sub("```sh", markdown))
    return LINK.sub(lambda link: link[1] + site_link(link[2], here, path) + link[3], markdown)


def site_link(target: str, here: str, page: str) -> str:
    """Return the link of the site for a link that is relative to the folder `here`."""
    path = posixpath.normpath(posixpath.join(here, target))
    path = ADDED.get(path, path.removeprefix("docs/"))
    return posixpath.relpath(path, posixpath.dirname(page) or ".")
