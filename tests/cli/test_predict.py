"""predict, of a language model: what takes time is found out only for those who ask."""

import io
import json
from types import SimpleNamespace

from regard.cli.predict import predict
from regard.run import Run
from regard.tasks.language.task import LanguageTask
from regard.tasks.load import resolve_settings
from regard.text.train import train_tokenizer


def test_next_words_are_for_json_only(tmp_path, monkeypatch, capsys):
    settings = resolve_settings(
        {
            "task": "language",
            "model": {"kind": "gpt2", "dim": 8, "heads": 2, "layers": 1, "max_positions": 8},
            "train": {"context_length": 8},
            "decode": {"kind": "greedy", "max_length": 20, "min_length": 20},
        }
    )
    text = train_tokenizer("characters", ["the cat sat on the mat"], 40)
    Run(settings, {"text": text}).save(tmp_path)
    asked = list[str]()
    inner = LanguageTask.next_words
    monkeypatch.setattr(
        LanguageTask,
        "next_words",
        lambda task, *given: asked.append(given[0]) or inner(task, *given),
    )

    def told(as_json: bool) -> list[str]:
        lines = io.BytesIO(b"the c\nthe \n")
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=lines))
        predict(tmp_path, as_json=as_json)
        return capsys.readouterr().out.splitlines()

    plain = told(as_json=False)
    assert asked == []
    predict(tmp_path, ["the c", "the "])  # on the command line: nothing is read from elsewhere
    assert capsys.readouterr().out.splitlines() == plain
    assert [len(line) for line in plain] == [25, 24]
    full = [json.loads(line) for line in told(as_json=True)]
    assert asked == [one["prompt"] for one in full] == ["the c", "the "]
    assert [one["prompt"] + one["outputs"][0]["text"] for one in full] == plain
    for one in full:
        assert 0 < sum(found["probability"] for found in one["next"]) <= 1
        assert set(one["next_tokens"][0]) == {"token", "probability"}
    assert all(found["word"].startswith("c") for found in full[0]["next"])
