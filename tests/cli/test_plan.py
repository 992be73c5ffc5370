"""`regard plan` prints memory, time and cost, and refuses numbers that make no sense."""

import json
from pathlib import Path

import pytest

from regard.cli.app import main
from regard.training.step_probe import measure_step_cost


@pytest.fixture
def plan(tmp_path, monkeypatch, capsys, unchecked):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("regard.cli.plan.measure_in_new_process", measure_step_cost)
    monkeypatch.setattr("regard.training.step_probe.MAX_TIMED_STEPS", 5)
    Path("pairs.tsv").write_text("".join(f"satz {n}\tsentence {n}\n" for n in range(40)))
    Path("config.toml").write_text('[data]\nkind = "files"\ntrain = "pairs.tsv"\n')

    def run(*words: str, code: int = 0) -> str:
        with pytest.raises(SystemExit) as end:
            main(["plan", "config.toml", "model.dim=8", "train.steps=50", *words])
        out, err = capsys.readouterr()
        assert end.value.code == code, err
        return err if code else out

    return run


def test_a_plan_has_memory_time_and_cost(plan):
    found = json.loads(plan("--json", "--gpus", "4", "--throughput", "1e9", "--price", "2"))
    row = found["chosen"]
    assert (row["gpus"], row["sharding"]) == (4, "DDP")
    assert row["cost"] == pytest.approx(4 * 2 * 24 * row["days"])
    assert found["optimal_tokens"] == 20 * found["parameters"]
    assert found["seconds_here"] is None
    text = plan("--measure", "--memory", "0.000001")
    assert "1 GPUs       it does not fit: 0.00 of 0 GB each; no number of GPUs will do" in text
    assert "here         " in text
    assert (
        len([line for line in text.splitlines() if line[:6].strip().replace(",", "").isdigit()])
        == 11
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--throughput", "0"), "regard: --throughput: must be more than 0 (0)\n"),
        (("--price", "-1"), "regard: --price: must be 0 or more (-1)\n"),
        (("data.train=none.tsv",), "regard: none.tsv: there is no such file\n"),
    ],
)
def test_what_makes_no_sense_is_one_line(plan, words, message):
    assert plan(*words, code=1) == message
