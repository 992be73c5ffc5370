"""Write docs/catalogue.md from the catalogues of the package: python docs/catalogue.py"""

from collections.abc import Iterable, Sequence
from pathlib import Path

from regard.attention.catalogue import NORMALIZERS, SCORES
from regard.data.catalogue import CORPORA
from regard.models.catalogue import MODELS
from regard.tasks.catalogue import TASKS, tasks_of_model

PAGE = Path(__file__).with_suffix(".md")
HEAD = """# Catalogue

Every task, model, score, normalizer and corpus of the package. `regard list` prints the same
tables, and [results.md](results.md) lists the presets. This page is written by
`python docs/catalogue.py`; a test compares it with the catalogues of the package.
"""


def section(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a heading and a Markdown table."""
    lines = [columns, ["---"] * len(columns), *rows]
    table = "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
    return f"\n## {title}\n\n{table}\n"


def model_page(import_path: str) -> str:
    return import_path.split(".")[2].partition(":")[0]


def catalogue_page() -> str:
    """Return the text of docs/catalogue.md."""
    tasks = [(f"[`{name}`](tasks/{name}.md)", entry.description) for name, entry in TASKS.items()]
    models = [
        (
            f"[`{name}`](models/{model_page(entry.import_path)}.md)",
            entry.description,
            entry.paper,
            ", ".join(tasks_of_model(name)),
        )
        for name, entry in MODELS.items()
    ]
    corpora = [
        (f"`{name}`", entry.description, entry.languages, entry.license)
        for name, entry in CORPORA.items()
    ]
    components = [
        [
            (f"[`{name}`](attention.md#{name})", entry.equation, entry.paper)
            for name, entry in catalogue.items()
        ]
        for catalogue in (SCORES, NORMALIZERS)
    ]
    return HEAD + "".join(
        [
            section("Tasks", ["task", "what it does"], tasks),
            section("Models", ["model", "what it is", "paper", "tasks"], models),
            section("Scores", ["score", "energy", "paper"], components[0]),
            section("Normalizers", ["normalizer", "weights", "paper"], components[1]),
            section("Corpora", ["corpus", "what it holds", "kind", "license"], corpora),
        ]
    )


if __name__ == "__main__":
    PAGE.write_text(catalogue_page(), encoding="utf-8")
