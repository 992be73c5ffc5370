"""Logs: the same facts in JSON lines, CSV and TensorBoard; cut where a training is taken up."""

import csv
import json
import sys
from pathlib import Path

import pytest

from regard.training.log import Log, read_log, summary_writer, truncate_log

STEP = {"loss": 2.5, "tokens": 10, "seconds": 0.5, "learning_rate": 0.1, "gradient_norm": 3.0}
DEV = {"loss": 2.25, "metric": 40.0, "best": True}
HEAD = "kind,step,loss,tokens,seconds,learning_rate,gradient_norm,metric,best"


def written(folder: Path, first: int, last: int, tensorboard: bool = False) -> None:
    with Log(folder, tensorboard=tensorboard, steps_done=first - 1) as log:
        for number in range(first, last + 1):
            log.add("step", {"number": number, **STEP})
            if number % 2 == 0:
                log.add("dev", {"step": number, **DEV})


def test_by_hand(tmp_path: Path):
    truncate_log(tmp_path, 0)
    assert (tmp_path / "log.csv").read_text() == HEAD + "\n"
    written(tmp_path, 1, 2)
    assert (tmp_path / "log.csv").read_text().splitlines() == [
        HEAD,
        "step,1,2.5,10,0.5,0.1,3.0,,",
        "step,2,2.5,10,0.5,0.1,3.0,,",
        "dev,2,2.25,,,,,40.0,True",
    ]
    assert read_log(tmp_path)[-1] == {"kind": "dev", "step": 2, **DEV}


def test_each_line_is_there_at_once(tmp_path: Path):
    truncate_log(tmp_path, 0)
    with Log(tmp_path) as log:
        log.add("step", {"number": 1, **STEP})
        assert len(read_log(tmp_path)) == 1
        assert len((tmp_path / "log.csv").read_text().splitlines()) == 2


@pytest.mark.parametrize("done", [0, 1, 2, 5, 9])
def test_what_is_done_again_is_cut_out_of_both(tmp_path: Path, done: int):
    truncate_log(tmp_path, 0)
    written(tmp_path, 1, 6)
    with (tmp_path / "log.jsonl").open("a") as file:
        file.write('{"kind": "step", "numb')  # the power went
    truncate_log(tmp_path, done)
    entries = read_log(tmp_path)
    assert [e["number"] for e in entries if e["kind"] == "step"] == list(range(1, min(done, 6) + 1))
    rows = list(csv.DictReader((tmp_path / "log.csv").read_text().splitlines()))
    assert [(r["kind"], int(r["step"])) for r in rows] == [
        (e["kind"], e.get("number", e.get("step"))) for e in entries
    ]
    lines = (tmp_path / "log.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == entries


def test_tensorboard_reads_it_back(tmp_path: Path):
    pytest.importorskip("tensorboard", reason="the extra `tensorboard` is not installed")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    truncate_log(tmp_path, 0)
    written(tmp_path, 1, 6, tensorboard=True)
    truncate_log(tmp_path, 3)
    written(tmp_path, 4, 4, tensorboard=True)  # taken up after step 3
    seen = EventAccumulator(str(tmp_path / "tensorboard"))
    seen.Reload()
    assert set(seen.Tags()["scalars"]) == {
        *("train/loss", "train/learning_rate", "train/gradient_norm", "train/tokens_per_second"),
        *("dev/loss", "dev/metric"),
    }
    assert [(e.step, e.value) for e in seen.Scalars("train/loss")] == [
        (n, 2.5) for n in range(1, 5)
    ]
    assert [(e.step, e.value) for e in seen.Scalars("dev/metric")] == [(2, 40.0), (4, 40.0)]
    assert seen.Scalars("train/tokens_per_second")[0].value == 20.0


def test_without_tensorboard_its_name_is_said(monkeypatch: pytest.MonkeyPatch):
    for name in [n for n in sys.modules if n.startswith("torch.utils.tensorboard")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    with pytest.raises(ModuleNotFoundError) as error:
        summary_writer()
    assert error.value.name == "tensorboard"
