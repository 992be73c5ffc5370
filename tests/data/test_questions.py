"""Tests of questions from files, synthetic facts, and public datasets."""

import gzip
import json

import pytest

from regard.config.data.questions import FactsDataConfig, PublicQuestionsDataConfig
from regard.data.build import build_corpus
from regard.data.corpus import location
from regard.data.formats.questions import QuestionFiles
from regard.data.synthetic.facts import Facts

CONTEXT = "Ada met Bob in Rome."
QUESTIONS = [
    {"id": "q1", "question": "Where?", "answers": [{"text": "Rome", "answer_start": 15}]},
    {"id": "q2", "question": "Why?", "answers": [], "is_impossible": True},
]
RECORDS = [
    {"id": "q1", "question": "Where?", "text": CONTEXT, "answers": [{"text": "Rome", "start": 15}]},
    {"id": "q2", "question": "Why?", "text": CONTEXT, "answers": []},
]


def squad_json(questions=QUESTIONS, context=CONTEXT) -> str:
    return json.dumps({"data": [{"paragraphs": [{"context": context, "qas": questions}]}]})


def write_file(path, text: str):
    data = text.encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def read_all(path, **options):
    return list(QuestionFiles(path, held_out=0.0, **options).read("train"))


def error_message(path, **options) -> str:
    with pytest.raises(ValueError) as caught:
        read_all(path, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


class TestFormats:
    @pytest.mark.parametrize("name", ["a.json", "a.json.gz"])
    def test_squad(self, tmp_path, name):
        assert read_all(write_file(tmp_path / name, squad_json())) == RECORDS

    def test_json_lines(self, tmp_path):
        lines = [json.dumps({**question, "context": CONTEXT}) for question in QUESTIONS]
        assert read_all(write_file(tmp_path / "a.jsonl", "\n".join(lines))) == RECORDS

    def test_answers_as_columns(self, tmp_path):
        question = {"question": "Where?", "context": CONTEXT}
        question["answers"] = {"text": ["Rome", "in Rome"], "answer_start": [15, 12]}
        [record] = read_all(write_file(tmp_path / "a.jsonl", json.dumps(question)))
        assert [answer["text"] for answer in record["answers"]] == ["Rome", "in Rome"]
        assert record["id"] == "1"

    def test_a_context_is_in_one_split(self, tmp_path):
        lines = [
            json.dumps({"question": f"{n}?", "context": f"context {n % 20}", "answers": []})
            for n in range(100)
        ]
        corpus = QuestionFiles(write_file(tmp_path / "a.jsonl", "\n".join(lines)), held_out=0.2)
        contexts_by_split = {
            split: {r["text"] for r in corpus.read(split)} for split in corpus.splits
        }
        assert sum(map(len, contexts_by_split.values())) == 20
        assert location(corpus, "train", 0).startswith(f"{tmp_path / 'a.jsonl'}:")


class TestErrorMessages:
    def test_not_json(self, tmp_path):
        assert "a.json:3: not JSON" in error_message(
            write_file(tmp_path / "a.json", '{"data":\n[\n}')
        )
        assert "a.jsonl:2: not JSON" in error_message(
            write_file(
                tmp_path / "a.jsonl", json.dumps({**QUESTIONS[0], "context": CONTEXT}) + "\n{"
            ),
        )

    def test_wrong_structure(self, tmp_path):
        assert "no list 'data'" in error_message(write_file(tmp_path / "a.json", "[]"))
        without_questions = json.dumps({"data": [{"paragraphs": [{"context": "x"}]}]})
        assert "data[0].paragraphs[0]: no list 'qas'" in error_message(
            write_file(tmp_path / "a.json", without_questions)
        )
        assert "a.jsonl:1: not an object" in error_message(write_file(tmp_path / "a.jsonl", "[]"))

    @pytest.mark.parametrize(
        ("change", "expected"),
        [
            ({"question": " "}, "question 'q1': its question is empty"),
            ({"question": None}, "question 'q1': its question is missing"),
            ({"answers": "Rome"}, "answers must be a list"),
            ({"answers": ["Rome"]}, "an answer must be {text, answer_start}, not 'Rome'"),
            ({"answers": [{"text": "", "answer_start": 0}]}, "an answer has no text"),
            ({"answers": [{"text": "Rome"}]}, "'Rome' has no answer_start"),
            (
                {"answers": [{"text": "Rome", "answer_start": 14}]},
                "the answer 'Rome' is not in its context at character 14 (' Rom'), but at 15",
            ),
            (
                {"answers": [{"text": "Oslo", "answer_start": -2}]},
                "is not in its context at character -2 (''), nor anywhere else",
            ),
        ],
    )
    @pytest.mark.parametrize("name", ["a.json", "a.jsonl"])
    def test_questions(self, tmp_path, change, expected, name):
        question = {**QUESTIONS[0], **change}
        text = (
            squad_json([question])
            if name == "a.json"
            else json.dumps({**question, "context": CONTEXT})
        )
        message = error_message(write_file(tmp_path / name, text))
        assert expected in message
        assert message.startswith(str(tmp_path / name))

    def test_empty_context(self, tmp_path):
        assert "its context is empty" in error_message(
            write_file(tmp_path / "a.json", squad_json(context=""))
        )

    def test_unknown_format(self, tmp_path):
        assert "cannot infer the format from .txt" in error_message(
            write_file(tmp_path / "a.txt", "x")
        )


class TestFacts:
    def test_the_answer_follows_its_thing_and_trait(self):
        corpus = build_corpus(FactsDataConfig(size=200, held_out=50))
        for record in corpus.read("train"):
            _, _, _, trait, _, thing, _ = record["question"].split()
            [answer] = record["answers"]
            before = record["text"][: answer["start"]].split(" . ")[-1].split()
            after = record["text"][answer["start"] + len(answer["text"]) :]
            assert sorted(before) == sorted(["the", trait, "of", thing, "is"])
            assert after.startswith(" .")
            facts = [
                sentence.partition(" is ")[0].split() for sentence in record["text"].split(" . ")
            ]
            assert sum(trait in sentence for sentence in facts) == 3  # neither is unique
            assert sum(thing in sentence for sentence in facts) == 2

    def test_no_context_is_in_two_splits(self):
        corpus = Facts(300, held_out=100)
        texts_by_split = [
            {record["text"] for record in corpus.read(split)} for split in corpus.splits
        ]
        assert not texts_by_split[0] & texts_by_split[1]
        assert not (texts_by_split[0] | texts_by_split[1]) & texts_by_split[2]

    def test_new_names_and_missing_answers(self):
        corpus = Facts(300, new_names=0.5, unanswerable=0.3)
        records = list(corpus.read("train"))
        with_new_names = [r for r in records if len(r["question"].split()[5]) == 6]
        unanswerable = [r for r in records if not r["answers"]]
        assert 100 < len(with_new_names) < 200
        assert 50 < len(unanswerable) < 130
        for record in unanswerable:
            _, _, _, trait, _, thing, _ = record["question"].split()
            facts = [
                sentence.partition(" is ")[0].split() for sentence in record["text"].split(" . ")
            ]
            assert not any(trait in sentence and thing in sentence for sentence in facts)

    def test_bad_settings(self):
        for options in (
            {"size": 0},
            {"attributes": 99},
            {"entities": 1, "attributes": 1},
            {"new_names": 2.0},
        ):
            with pytest.raises(ValueError, match=next(iter(options))):
                Facts(**{"size": 5, **options})


def test_public_dataset(monkeypatch, tmp_path):
    """A file of a mirror with a wrong checksum is refused."""
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("REGARD_MIRROR", str(tmp_path / "mirror"))
    folder = tmp_path / "mirror" / "qa" / "squad_v1.1"
    folder.mkdir(parents=True)
    write_file(folder / "dev-v1.1.json.gz", squad_json())
    with pytest.raises(ValueError, match=r"dev-v1\.1\.json"):
        list(build_corpus(PublicQuestionsDataConfig(name="squadshifts")).read("test"))
    assert "CC BY-SA 4.0" in build_corpus(PublicQuestionsDataConfig(name="squad_dev")).describe()
