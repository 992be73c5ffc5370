"""Records that a program already holds: lists of dicts, pandas and Hugging Face datasets."""

import json

import numpy as np
import pytest

from regard.config.base import DataConfig
from regard.data.build import build_corpus
from regard.data.records import find_table, split_records, to_records, write_records
from regard.tasks.catalogue import table_classes

PAIRS = [{"source": "one", "target": "1"}, {"source": "two", "target": "2"}]


def data_tables(task: str) -> list[type[DataConfig]]:
    tables = table_classes(task, "data").values()
    return [table for table in tables if issubclass(table, DataConfig)]


def test_a_list_of_dicts_is_copied():
    records = to_records(PAIRS)
    assert records == PAIRS
    assert records[0] is not PAIRS[0]


def test_a_data_frame_leaves_missing_cells_out():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"text": ["a", "b"], "label": ["x", None]})
    assert to_records(frame) == [{"text": "a", "label": "x"}, {"text": "b"}]


def test_class_labels_of_a_dataset_become_their_names():
    datasets = pytest.importorskip("datasets")
    features = datasets.Features(
        {
            "text": datasets.Value("string"),
            "label": datasets.ClassLabel(names=["negative", "positive"]),
            "tags": datasets.Sequence(datasets.ClassLabel(names=["O", "B-X"])),
        }
    )
    data = datasets.Dataset.from_dict(
        {"text": ["good"], "label": [1], "tags": [[0, 1]]}, features=features
    )
    assert to_records(data) == [{"text": "good", "label": "positive", "tags": ["O", "B-X"]}]
    splits = split_records(datasets.DatasetDict({"train": data, "validation": data}))
    assert list(splits) == ["train", "dev"]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], "data: there are no records; give at least one"),
        (["a"], "data: record 1 must be a dict, not str"),
        ({"dev": PAIRS}, "data: there is no split 'train' among dev"),
        ({"train": PAIRS, "tset": PAIRS}, "split must be one of .*did you mean 'test'"),
    ],
)
def test_wrong_data_is_one_line(data, message):
    with pytest.raises(ValueError, match=message):
        split_records(data)


def test_records_of_no_table_are_refused():
    with pytest.raises(ValueError, match=r"records must have the fields \(source, target\)"):
        find_table(data_tables("translate"), {"input": "a", "output": "b"})


def test_records_are_written_and_read_back(tmp_path):
    table = find_table(data_tables("translate"), PAIRS[0])
    values = write_records({"train": PAIRS, "test": PAIRS[:1]}, table, tmp_path / "data")
    corpus = build_corpus(table(**values))
    for split, expected in {"train": PAIRS, "test": PAIRS[:1]}.items():
        pairs = [(record["source"], record["target"]) for record in corpus.read(split)]
        assert pairs == [(record["source"], record["target"]) for record in expected]


def test_the_same_folder_takes_the_same_records_only(tmp_path):
    table = find_table(data_tables("translate"), PAIRS[0])
    first = write_records({"train": PAIRS}, table, tmp_path / "data")
    assert write_records({"train": PAIRS}, table, tmp_path / "data") == first
    with pytest.raises(ValueError, match="data: holds other records; take another folder"):
        write_records({"train": PAIRS[:1]}, table, tmp_path / "data")
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_a_tenth_is_held_out_of_many_texts_and_none_of_few(tmp_path):
    table = find_table(data_tables("language"), {"text": "a"})
    many = [{"text": f"{n}"} for n in range(100)]
    assert write_records({"train": many}, table, tmp_path / "many")["held_out"] == 0.1
    assert write_records({"train": many[:9]}, table, tmp_path / "few")["held_out"] == 0.0


def test_numbers_of_numpy_become_json(tmp_path):
    record = {"text": "a", "label": "b", "number": np.int64(3), "values": np.array([1.5, 2.0])}
    table = find_table(data_tables("classify"), record)
    write_records({"train": [record]}, table, tmp_path / "data")
    line = json.loads((tmp_path / "data" / "train.jsonl").read_text())
    assert (line["number"], line["values"]) == (3, [1.5, 2.0])
