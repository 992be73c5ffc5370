"""Words of ordinary text, split as the training data is, and the probabilities of spans."""

from itertools import product

import pytest
import torch
from torch import nn

import regard
from regard.layers.crf import CRF
from regard.run import Run
from regard.tasks.tag.model import SequenceTagger, TagLogits
from regard.tasks.tag.words import WordSplitter

NAMES = ["Ada", "Bob", "Charles", "Eve"]
TOWNS = ["London", "Oslo", "Rome", "Paris"]


def words_of(splitter: WordSplitter, text: str) -> list[str]:
    words = splitter.split(text)
    assert all(text[word.start : word.end] == word.text for word in words)
    return [word.text for word in words]


def test_marks_are_split_as_in_the_data():
    data = [["He", "left", "the", "U.S.", "."], ["(", "Ada", ",", "too", ")", "."]]
    splitter = WordSplitter.from_data(data)
    expected = ["(", "Ada", "left", "London", ",", "U.S.", ",", ")", "."]
    assert words_of(splitter, "(Ada  left London, U.S.,).") == expected
    assert words_of(splitter, "so? ...") == ["so?", ".", ".", "."]
    assert words_of(splitter, "") == []


def test_marks_stay_if_the_data_has_them_in_words():
    splitter = WordSplitter.from_data([["Hello,", "Ada."], ["Stop."], ["."]])
    assert words_of(splitter, "Hello, Bob.") == ["Hello,", "Bob."]


def test_a_splitter_is_saved_and_loaded(tmp_path):
    splitter = WordSplitter.from_data([["U.S.", "."], ["."]])
    splitter.save(tmp_path / "words.json")
    loaded = WordSplitter.load(tmp_path / "words.json")
    assert (loaded.marks, loaded.exceptions) == ({"."}, {"U.S."})
    (tmp_path / "words.json").write_text("[]")
    with pytest.raises(ValueError, match="must be an object with marks and exceptions"):
        WordSplitter.load(tmp_path / "words.json")


def tagger(crf: CRF | None) -> SequenceTagger:
    """Return a tagger that has no encoder, for its probabilities."""
    model = SequenceTagger.__new__(SequenceTagger)
    nn.Module.__init__(model)
    model.crf = crf
    return model


@pytest.mark.parametrize("has_crf", [True, False])
def test_probabilities_of_spans_are_sums_over_all_tags(has_crf):
    torch.manual_seed(1)
    energy, valid = torch.randn(1, 5, 3), torch.tensor([[True] * 4 + [False]])
    crf = CRF(3) if has_crf else None
    if crf is not None:
        for weight in crf.parameters():
            nn.init.normal_(weight)
    tags, spans = [0, 2, 1, 1], [(1, 3), (0, 1), (0, 4)]
    paths = torch.tensor(list(product(range(3), repeat=4)))
    if crf is None:
        scores = energy[0, range(4)].gather(1, paths.T).sum(0)
    else:
        scores = crf.score(energy[:, :4].expand(81, -1, -1), paths, valid[:, :4].expand(81, -1))
    shares = scores.detach().softmax(0)
    expected = [
        float(shares[(paths[:, a:b] == torch.tensor(tags[a:b])).all(1)].sum()) for a, b in spans
    ]
    logits = TagLogits(energy, valid, None)
    assert tagger(crf).span_probabilities(logits, 0, tags, spans) == pytest.approx(expected)
    assert tagger(crf).span_probabilities(logits, 0, tags, []) == []


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Run:
    data = [
        {
            "tokens": [name, "met", other, "in", town, ",", land, "."],
            "tags": ["B-person", "O", "B-person", "O", "B-place", "O", "B-place", "O"],
        }
        for name, other, town, land in zip(
            NAMES * 4, NAMES[1:] * 5, TOWNS * 4, ["England", "Norway"] * 8, strict=False
        )
    ]
    train = {"examples_per_batch": 8, "learning_rate": 0.03}
    settings = {"train": train, "text": {"kind": "words", "min_count": 1}}
    folder = tmp_path_factory.mktemp("words") / "run"
    model = {"dim": 12, "hidden_dim": 8}
    return regard.fit(
        "tag", data, model, steps=40, folder=folder, settings=settings, progress=False
    )


def test_ordinary_text_is_tagged(run, tmp_path):
    text = "Ada met Charles in London, England."
    spans = run(text).as_dict()["spans"]
    assert [(span["text"], span["label"]) for span in spans] == [
        ("Ada", "person"),
        ("Charles", "person"),
        ("London", "place"),
        ("England", "place"),
    ]
    for span in spans:
        assert text[span["start"] : span["end"]] == span["text"]
        assert 0 <= span["probability"] <= 1
    run.save(tmp_path / "again")
    assert regard.load(tmp_path / "again")(text).as_dict() == run(text).as_dict()


def test_the_default_tagger_has_attention(run):
    """`model` has no kind, so that it is the default."""
    attention = run.attention("Ada met Bob.")
    assert attention.queries.tokens == ("Ada", "met", "Bob", ".")
