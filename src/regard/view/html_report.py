"""A comparison of models as one HTML file: sortable tables, plots and attention maps."""

import base64
from collections.abc import Sequence
from html import escape

from regard.view.attention_map import AttentionMap
from regard.view.page import escape_invisible, page_text, side_by_side
from regard.view.report import (
    ComparisonReport,
    TableCells,
    length_bins,
    length_table,
    overview_table,
    seed_average_table,
)


def as_html(
    report: ComparisonReport,
    pictures: Sequence[tuple[str, bytes]],
    maps: Sequence[tuple[str, AttentionMap]] = (),
) -> str:
    """Return the page; `pictures` are captions and PNGs, `maps` the attention of each model."""
    tables = [overview_table(report.models)]
    tables += [seed_average_table(report.spreads)] if report.spreads else []
    tables += [length_table(report.models)] if length_bins(report.models) else []
    count = len(report.models)
    title = f"Comparison of {count} models" if count > 1 else "Report of one model"
    data = escape_html(f"Data: {report.title}")
    body = [
        f'<p title="{data}">{data}</p>',
        *(html_table(table, f"Table {n}") for n, table in enumerate(tables, 1)),
    ]
    notes = "".join(f"<li>{escape_html(note)}</li>" for note in report.notes)
    body += [f"<ul>{notes}</ul>"] if notes else []
    figures = "\n".join(html_figure(caption, picture) for caption, picture in pictures)
    body += [f'<div class="figures">\n{figures}\n</div>'] if figures else []
    body += ["<h2>Attention to the first input</h2>", side_by_side(maps)] if maps else []
    content = '<div class="report">\n' + "\n".join(body) + "\n</div>"
    return page_text(title, content, style="report.css", script="report.js")


def html_table(cells: TableCells, name: str) -> str:
    first, *rows = cells
    head = "".join(f'<th scope="col"><button>{escape_html(text)}</button></th>' for text in first)
    lines = ("".join(f"<td>{escape_html(text)}</td>" for text in row) for row in rows)
    body = "".join(f"<tr>{line}</tr>\n" for line in lines)
    table = f'<table class="results"><thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table>'
    return f'<div class="scroll" tabindex="0" role="region" aria-label="{name}">{table}</div>'


def html_figure(caption: str, picture: bytes) -> str:
    data = base64.b64encode(picture).decode()
    return f'<figure><img alt="{escape_html(caption)}" src="data:image/png;base64,{data}"></figure>'


def escape_html(text: str) -> str:
    return escape(escape_invisible(text))
