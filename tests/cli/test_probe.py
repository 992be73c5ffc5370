"""`regard probe`."""

import json

import pytest

from regard.cli.app import main
from regard.cli.probe import curve_table, measure_gradients

SMALL = ("probe", "--length", "40", "--hidden", "8", "--batch", "4")


def run(capsys, *words: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main([*words])
    shown = capsys.readouterr()
    return int(ended.value.code or 0), shown.out, shown.err


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_plain_network_vanishes_and_the_gates_hold(capsys, seed):
    code, out, _ = run(capsys, *SMALL, "--hidden", "32", "--seed", str(seed), "--json")
    assert code == 0
    told = json.loads(out)
    gradient = told["gradient"]
    assert told["distance"] == list(range(41))
    assert told["setting"]["bias"] == pytest.approx(3.6636, abs=1e-4)  # ln 39
    assert {name: len(values) for name, values in gradient.items()} == dict.fromkeys(
        ["Elman", "GRU", "LSTM"], 41
    )
    assert all(values[0] == 1 for values in gradient.values())
    assert gradient["Elman"][40] < 1e-5
    assert gradient["GRU"][40] > 1e-2
    assert gradient["LSTM"][40] > 1e-2


def test_it_is_the_bias_that_holds():
    closed = measure_gradients(length=40, hidden=16, batch=4, bias=-3.0, seed=0)
    assert closed["LSTM"][40] < 1e-8
    assert closed["GRU"][40] < 1e-4


def test_the_same_seed_is_the_same_picture(capsys):
    shown = [run(capsys, *SMALL, "--seed", seed)[1] for seed in ("7", "7", "8")]
    assert shown[0] == shown[1] != shown[2]


def test_it_prints_a_picture_and_the_numbers_and_draws_a_file(regard, tmp_path):
    path = tmp_path / "curve.png"
    done = regard(*SMALL, "--save", str(path), NO_COLOR="1", COLUMNS="80")
    assert done.returncode == 0
    assert "● Elman   ▲ GRU   ■ LSTM" in done.stdout
    assert "gate bias 3.66, seed 0" in done.stdout
    assert "\nElman " in done.stdout
    assert f"{path}: written" in done.stdout
    assert done.stderr == ""
    assert path.read_bytes().startswith(b"\x89PNG")


def test_table_by_hand():
    assert curve_table({"a": [1.0, 0.5, 0.25, 0.125, 0.0625]}, 4).splitlines() == [
        "distance          1         2         4",
        "a           5.0e-01   2.5e-01   6.2e-02",
    ]


@pytest.mark.parametrize(
    ("code", "words", "said"),
    [
        (1, ["--save", "curve.gif"], "curve.gif: a plot must end in .png or .svg"),
        (1, ["--save", "nowhere/curve.png"], "nowhere/curve.png: there is no folder nowhere"),
        (1, ["--bias", "nan"], "keep_bias must be finite, not nan"),
        (2, ["--length", "1"], "--length"),
        (2, ["--seed", "-1"], "--seed"),
    ],
)
def test_errors_are_one_line(capsys, tmp_path, monkeypatch, code, words, said):
    monkeypatch.chdir(tmp_path)
    if "--save" in words:  # refused before the work
        monkeypatch.setattr("regard.cli.probe.measure_gradients", None)
    ended, out, err = run(capsys, *SMALL, *words)
    assert ended == code
    assert out == ""
    assert said in err
    assert err.count("\n") == 1


def test_numbers_too_large_are_null_in_json(capsys, monkeypatch):
    endless = {"Elman": [1.0, float("inf"), float("nan")]}
    monkeypatch.setattr("regard.cli.probe.measure_gradients", lambda *_: endless)
    _, out, _ = run(capsys, "probe", "--length", "2", "--json")
    assert json.loads(out)["gradient"]["Elman"] == [1.0, None, None]
