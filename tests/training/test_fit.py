"""`regard.fit`: data from anywhere, settings, resuming, and errors of one line."""

import json

import pytest

import regard
from regard.training.fit import fit_settings

PAIRS = [{"source": "one two", "target": "1 2"}, {"source": "two one", "target": "2 1"}]
TINY = {"kind": "rnnsearch", "dim": 8, "hidden_dim": 8}


def fit_tiny(folder, data, **options) -> regard.Run:
    return regard.fit("translate", data, TINY, folder=folder, progress=False, **options)


def test_list_frame_and_dataset_train_the_same_model(tmp_path):
    pandas, datasets = pytest.importorskip("pandas"), pytest.importorskip("datasets")
    sources = {
        "list": PAIRS,
        "frame": pandas.DataFrame(PAIRS),
        "dataset": datasets.Dataset.from_list(PAIRS),
    }
    weights = set()
    for name, data in sources.items():
        fit_tiny(tmp_path / name, data, steps=2)
        weights.add((tmp_path / name / "weights.safetensors").read_bytes())
    assert len(weights) == 1


def test_a_path_is_data(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text("one\t1\ntwo\t2\n")
    run = fit_tiny(tmp_path / "run", path, steps=1)
    assert run.settings.data.train.endswith("pairs.tsv")


def test_the_same_call_resumes(tmp_path):
    fit_tiny(tmp_path / "once", PAIRS, steps=4)
    fit_tiny(tmp_path / "twice", PAIRS, steps=4)
    fit_tiny(tmp_path / "twice", PAIRS, steps=4)
    weights = [(tmp_path / name / "weights.safetensors").read_bytes() for name in ("once", "twice")]
    assert weights[0] == weights[1]


def test_arguments_are_tables_of_settings(tmp_path):
    values = fit_settings(
        "translate",
        {"kind": "dates", "size": 8},
        "luong",
        5,
        tmp_path,
        {"train": {"learning_rate": 0.1}, "model": {"dim": 8}},
    )
    assert values == {
        "task": "translate",
        "data": {"kind": "dates", "size": 8},
        "model": {"kind": "luong", "dim": 8},
        "train": {"learning_rate": 0.1, "steps": 5},
    }


def test_data_may_be_the_name_of_a_data_set(tmp_path):
    def table(name: str) -> object:
        return fit_settings("translate", name, None, None, tmp_path, None)["data"]

    assert table("dates") == {"kind": "dates"}
    assert table("multi30k") == {"kind": "public", "name": "multi30k"}


@pytest.mark.parametrize(
    ("task", "data", "message"),
    [
        ("translat", PAIRS, 'did you mean "translate"'),
        ("translate", "nothing.tsv", "'nothing.tsv' is no file, and no data of this task"),
        ("translate", [{"a": "b"}], r"records must have the fields \(source, target\)"),
        ("translate", [*PAIRS, {"source": "x"}], "record 3 must have the fields"),
        ("copy", PAIRS, "this task makes its own data"),
    ],
)
def test_a_wrong_call_is_one_line_and_leaves_no_folder(task, data, message, tmp_path):
    with pytest.raises(ValueError, match=message) as error:
        regard.fit(task, data, folder=tmp_path / "run", progress=False)
    assert "\n" not in str(error.value)
    assert list(tmp_path.iterdir()) == []


def test_json_lines_show_their_kind_by_their_fields(tmp_path):
    path = tmp_path / "data.jsonl"
    path.write_text(json.dumps({"text": "a", "label": "b"}) + "\n")
    assert fit_settings("classify", path, None, None, tmp_path, None)["data"]["train"] == str(path)


def test_changed_files_are_refused_or_accepted(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text("one\t1\ntwo\t2\n")
    fit_tiny(tmp_path / "run", path, steps=1)
    path.write_text("one\t1\ntwo\t2\none two\t1 2\n")
    with pytest.raises(ValueError, match="was changed since the training"):
        fit_tiny(tmp_path / "run", path, steps=2)
    fit_tiny(tmp_path / "run", path, steps=2, accept_changed_data=True)


def test_few_texts_have_smaller_batches(tmp_path):
    texts = [{"text": "the cat sat on the mat"}, {"text": "the dog sat"}]
    model = {"kind": "gpt2", "dim": 8, "heads": 2, "layers": 1}
    run = regard.fit("language", texts, model, steps=2, folder=tmp_path, progress=False)
    assert run("the").text.startswith("the")
