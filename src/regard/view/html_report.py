"""A comparison of models as one HTML file with sortable tables and plots; it fetches nothing."""

import base64
from collections.abc import Sequence
from html import escape

from regard.view.page import escape_invisible
from regard.view.report import (
    ComparisonReport,
    TableCells,
    length_bins,
    length_table,
    overview_table,
    seed_average_table,
)
from regard.view.sanitize import security_policy

STYLE = """
:root { color-scheme: light dark; --line: #8885; }
body { margin: 1.5rem auto; max-width: 72rem; padding: 0 1rem; }
body { font: 15px/1.5 system-ui, sans-serif; }
table { border-collapse: collapse; margin: 1rem 0; display: block; overflow-x: auto; }
th, td { padding: .2rem .7rem; border-bottom: 1px solid var(--line); text-align: right; }
th:first-child, td:first-child { text-align: left; }
th button { all: unset; cursor: pointer; } th button:focus-visible { outline: 2px solid; }
th[aria-sort=ascending] button::after { content: " ▲"; }
th[aria-sort=descending] button::after { content: " ▼"; }
figure { margin: 1.5rem 0; } figure img { max-width: 100%; background: #fff; }
"""
SCRIPT = """
const number = (cell) => parseFloat(cell.textContent.replace(/,/g, ""));
for (const button of document.querySelectorAll("th button")) {
  button.addEventListener("click", () => {
    const head = button.parentElement, table = head.closest("table"), at = head.cellIndex;
    const up = head.getAttribute("aria-sort") === "descending";
    for (const other of head.parentElement.cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    const rows = [...table.tBodies[0].rows];
    rows.sort((a, b) => {
      const [x, y] = [number(a.cells[at]), number(b.cells[at])];
      const named = a.cells[at].textContent.localeCompare(b.cells[at].textContent);
      const by = isNaN(x) && isNaN(y) ? named : isNaN(x) ? -1 : isNaN(y) ? 1 : x - y;
      return up ? by : -by;
    });
    table.tBodies[0].append(...rows);
  });
}
"""


def as_html(report: ComparisonReport, pictures: Sequence[tuple[str, bytes]]) -> str:
    """Return the page; `pictures` are captions and PNGs."""
    tables = [overview_table(report.models)]
    tables += [seed_average_table(report.spreads)] if report.spreads else []
    tables += [length_table(report.models)] if length_bins(report.models) else []
    notes = "".join(f"<li>{escape_html(note)}</li>" for note in report.notes)
    title = escape_html(report.title)
    body = [f"<h1>{title}</h1>", *map(html_table, tables), f"<ul>{notes}</ul>"]
    body += [html_figure(caption, picture) for caption, picture in pictures]
    head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    head += security_policy(SCRIPT)
    return (
        f'<!doctype html>\n<html lang="en"><head>{head}<title>{title}</title>'
        f"<style>{STYLE}</style></head>\n<body>\n" + "\n".join(body) + "\n"
        f"<script>{SCRIPT}</script>\n</body></html>\n"
    )


def html_table(cells: TableCells) -> str:
    first, *rows = cells
    head = "".join(f'<th scope="col"><button>{escape_html(text)}</button></th>' for text in first)
    lines = ("".join(f"<td>{escape_html(text)}</td>" for text in row) for row in rows)
    body = "".join(f"<tr>{line}</tr>\n" for line in lines)
    return f"<table><thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table>"


def html_figure(caption: str, picture: bytes) -> str:
    data = base64.b64encode(picture).decode()
    escaped_caption = escape_html(caption)
    image = f'<img alt="{escaped_caption}" src="data:image/png;base64,{data}">'
    return f"<figure>{image}<figcaption>{escaped_caption}</figcaption></figure>"


def escape_html(text: str) -> str:
    return escape(escape_invisible(text))
