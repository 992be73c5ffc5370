"""Write docs/catalogue.md from the catalogues of the package: python docs/catalogue.py"""

from collections.abc import Iterable, Sequence
from pathlib import Path

from regard.attention.catalogue import NORMALIZERS, SCORES
from regard.data.catalogue import CORPORA
from regard.models.catalogue import MODELS
from regard.tasks.catalogue import TASKS, tasks_of_model

PAGE = Path(__file__).with_suffix(".md")
MODEL_DESCRIPTIONS = {
    "encdec": "one vector for the whole source, read at every step",
    "seq2seq": "stacked LSTMs; reversed source; the state is copied to the decoder",
    "rnnsearch": "the first attention over the states of an encoder",
    "luong": "global, local-m and local-p attention, every score, input feeding",
    "transformer": "attention only, with post- or pre-normalization",
    "rnmt": "RNMT+: multi-head additive attention over deep LSTMs",
    "lstmn_fusion": "LSTMN encoder and decoder, with attention to the source",
    "pointer": "generates words or copies them, with coverage",
    "rnnlm": "recurrent language model: Elman, LSTM or GRU",
    "lstmn": "LSTM with attention to its own past states",
    "gpt2": "causal transformer language model",
    "roll_rnn": "recurrent model of piano rolls: Elman, LSTM or GRU",
    "roll_gpt": "causal transformer over piano rolls",
    "ntm": "Neural Turing Machine: a controller, heads and a memory",
    "lstm": "LSTM without any other memory, as a baseline",
    "snail": "dilated convolutions and attention over an episode",
    "birnn": "bidirectional recurrent encoder with attention pooling",
    "han": "attention over words, then over sentences",
    "bert": "bidirectional transformer encoder",
    "vit": "transformer over the patches of an image",
    "show_tell": "one vector of the image, then an LSTM that writes the caption",
    "show_attend": "soft or hard attention to the image, for each word",
    "msa": "the Evoformer: aligned sequences and pairs of residues, with triangles",
    "bilstm_crf": "bidirectional LSTM over words and letters, with a CRF",
    "birnn_attention": "bidirectional RNN with attention, for slots and intents",
    "bidaf": "bidirectional attention between context and question",
    "elmo": "character convolutions and two language models, mixed",
}
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
            MODEL_DESCRIPTIONS[name],
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
