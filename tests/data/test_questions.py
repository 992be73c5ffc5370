"""Questions from files: what is in them, and for every wrong one a line that says where."""

import gzip
import json

import pytest

from regard.config.data.questions import FactsDataConfig, PublicQuestionsDataConfig
from regard.data.build import build_corpus
from regard.data.corpus import location
from regard.data.formats.questions import QuestionFiles
from regard.data.synthetic.facts import Facts

CONTEXT = "Ada met Bob in Rome."
ASKED = [
    {"id": "q1", "question": "Where?", "answers": [{"text": "Rome", "answer_start": 15}]},
    {"id": "q2", "question": "Why?", "answers": [], "is_impossible": True},
]
RECORDS = [
    {"id": "q1", "question": "Where?", "text": CONTEXT, "answers": [{"text": "Rome", "start": 15}]},
    {"id": "q2", "question": "Why?", "text": CONTEXT, "answers": []},
]


def squad(asked=ASKED, context=CONTEXT) -> str:
    return json.dumps({"data": [{"paragraphs": [{"context": context, "qas": asked}]}]})


def put(path, text: str):
    data = text.encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def all_of(path, **more):
    return list(QuestionFiles(path, held_out=0.0, **more).read("train"))


def said(path, **more) -> str:
    with pytest.raises(ValueError) as caught:
        all_of(path, **more)
    assert "\n" not in str(caught.value)
    return str(caught.value)


class TestFormats:
    @pytest.mark.parametrize("name", ["a.json", "a.json.gz"])
    def test_squad(self, tmp_path, name):
        assert all_of(put(tmp_path / name, squad())) == RECORDS

    def test_json_lines(self, tmp_path):
        lines = [json.dumps({**one, "context": CONTEXT}) for one in ASKED]
        assert all_of(put(tmp_path / "a.jsonl", "\n".join(lines))) == RECORDS

    def test_columns_of_answers(self, tmp_path):
        one = {"question": "Where?", "context": CONTEXT}
        one["answers"] = {"text": ["Rome", "in Rome"], "answer_start": [15, 12]}
        [record] = all_of(put(tmp_path / "a.jsonl", json.dumps(one)))
        assert [answer["text"] for answer in record["answers"]] == ["Rome", "in Rome"]
        assert record["id"] == "1"

    def test_a_context_is_in_one_split(self, tmp_path):
        lines = [
            json.dumps({"question": f"{n}?", "context": f"context {n % 20}", "answers": []})
            for n in range(100)
        ]
        corpus = QuestionFiles(put(tmp_path / "a.jsonl", "\n".join(lines)), held_out=0.2)
        seen = {split: {r["text"] for r in corpus.read(split)} for split in corpus.splits}
        assert sum(map(len, seen.values())) == 20
        assert location(corpus, "train", 0).startswith(f"{tmp_path / 'a.jsonl'}:")


class TestWrong:
    def test_not_json(self, tmp_path):
        assert "a.json:3: not JSON" in said(put(tmp_path / "a.json", '{"data":\n[\n}'))
        assert "a.jsonl:2: not JSON" in said(
            put(tmp_path / "a.jsonl", json.dumps({**ASKED[0], "context": CONTEXT}) + "\n{"),
        )

    def test_other_json(self, tmp_path):
        assert "there is no list 'data'" in said(put(tmp_path / "a.json", "[]"))
        wrong = json.dumps({"data": [{"paragraphs": [{"context": "x"}]}]})
        assert "data[0].paragraphs[0]: there is no list 'qas'" in said(
            put(tmp_path / "a.json", wrong)
        )
        assert "a.jsonl:1: not an object" in said(put(tmp_path / "a.jsonl", "[]"))

    @pytest.mark.parametrize(
        ("change", "line"),
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
                "is not in its context at character -2 (''), nor is it anywhere else",
            ),
        ],
    )
    @pytest.mark.parametrize("name", ["a.json", "a.jsonl"])
    def test_questions(self, tmp_path, change, line, name):
        one = {**ASKED[0], **change}
        text = squad([one]) if name == "a.json" else json.dumps({**one, "context": CONTEXT})
        found = said(put(tmp_path / name, text))
        assert line in found
        assert found.startswith(str(tmp_path / name))

    def test_empty_context(self, tmp_path):
        assert "its context is empty" in said(put(tmp_path / "a.json", squad(context="")))

    def test_unknown_format(self, tmp_path):
        assert "name one" in said(put(tmp_path / "a.txt", "x"))


class TestFacts:
    def test_the_answer_is_where_thing_and_trait_meet(self):
        corpus = build_corpus(FactsDataConfig(size=200, held_out=50))
        for record in corpus.read("train"):
            _, _, _, trait, _, thing, _ = record["question"].split()
            [answer] = record["answers"]
            before = record["text"][: answer["start"]].split(" . ")[-1].split()
            after = record["text"][answer["start"] + len(answer["text"]) :]
            assert sorted(before) == sorted(["the", trait, "of", thing, "is"])
            assert after.startswith(" .")
            facts = [one.partition(" is ")[0].split() for one in record["text"].split(" . ")]
            assert sum(trait in one for one in facts) == 3  # neither is enough alone
            assert sum(thing in one for one in facts) == 2

    def test_no_context_is_in_two_splits(self):
        corpus = Facts(300, held_out=100)
        seen = [{record["text"] for record in corpus.read(split)} for split in corpus.splits]
        assert not seen[0] & seen[1]
        assert not (seen[0] | seen[1]) & seen[2]

    def test_new_names_and_missing_answers(self):
        corpus = Facts(300, new_names=0.5, unanswerable=0.3)
        records = list(corpus.read("train"))
        new = [r for r in records if len(r["question"].split()[5]) == 6]
        none = [r for r in records if not r["answers"]]
        assert 100 < len(new) < 200
        assert 50 < len(none) < 130
        for record in none:
            _, _, _, trait, _, thing, _ = record["question"].split()
            facts = [one.partition(" is ")[0].split() for one in record["text"].split(" . ")]
            assert not any(trait in one and thing in one for one in facts)

    def test_what_cannot_be(self):
        for wrong in (
            {"size": 0},
            {"attributes": 99},
            {"entities": 1, "attributes": 1},
            {"new_names": 2.0},
        ):
            with pytest.raises(ValueError, match=next(iter(wrong))):
                Facts(**{"size": 5, **wrong})


def test_named(monkeypatch, tmp_path):
    """From a mirror, with the checksum of its publisher: ours is not that text."""
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("REGARD_MIRROR", str(tmp_path / "mirror"))
    folder = tmp_path / "mirror" / "qa" / "squad_v1.1"
    folder.mkdir(parents=True)
    put(folder / "dev-v1.1.json.gz", squad())
    with pytest.raises(ValueError, match=r"dev-v1\.1\.json"):
        list(build_corpus(PublicQuestionsDataConfig(name="squadshifts")).read("test"))
    assert "CC BY-SA 4.0" in build_corpus(PublicQuestionsDataConfig(name="squad_dev")).describe()
