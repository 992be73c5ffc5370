"""`regard demo`."""

import re
import signal
import subprocess
import sys

import pytest
import torch

from regard.cli.app import main
from regard.cli.demo import WORD, Reverser, Words, accuracy, picture, training
from regard.view.terminal import Surface


def test_backwards_by_hand():
    ids = torch.tensor([[0, 1, 2, 9], [3, 4, 9, 9]])
    valid = torch.tensor([[True, True, True, False], [True, True, False, False]])
    words = Words(ids, valid)
    assert words.backwards()[valid].tolist() == [2, 1, 0, 4, 3]


def test_random_words_have_every_length_and_letter():
    words = Words.random(2000, torch.Generator().manual_seed(0))
    assert set(words.valid.sum(-1).tolist()) == set(range(3, 21))
    assert set(words.ids.flatten().tolist()) == set(range(26))


def test_padding_is_not_looked_at():
    words = Words.random(8, torch.Generator().manual_seed(0))
    other = Words(torch.where(words.valid, words.ids, 25 - words.ids), words.valid)
    model = Reverser()
    assert torch.equal(model(words)[words.valid], model(other)[words.valid])


def test_it_learns_to_look_at_the_mirror_image(seed):
    torch.manual_seed(seed)
    draw = torch.Generator().manual_seed(seed)
    model = Reverser()
    before, _ = accuracy(model, draw)
    losses = list(training(model, 200, draw))
    after, whole = accuracy(model, draw)
    assert before < 0.2
    assert losses[-1] < losses[0] / 5
    assert after > 0.97
    assert whole > 0.8
    lines = picture(model, WORD, Surface(80, "ascii")).splitlines()
    assert lines[0] == "attention -> noitnetta"
    rows = lines[4 : 4 + len(WORD)]
    for i, row in enumerate(rows):
        cells = row.split()[1:]
        strongest = max(range(len(cells)), key=lambda j: ".123456789X".index(cells[j]))
        assert strongest == len(WORD) - 1 - i


def test_the_same_seed_is_the_same_run(capsys):
    shown = []
    for seed in ("7", "7", "8"):
        with pytest.raises(SystemExit):
            main(["demo", "--steps", "2", "--seed", seed])
        shown.append(capsys.readouterr().out)
    assert shown[0] == shown[1] != shown[2]


def test_it_prints_accuracy_map_and_what_to_try_next(regard):
    done = regard("demo", "--steps", "3", "--seed", "7", NO_COLOR="1")
    assert done.returncode == 0
    assert re.search(r"On 1000 new words: \d+\.\d% of letters right", done.stdout)
    assert "  a t t e n t i o n\n" in done.stdout
    assert "regard list" in done.stdout
    assert "\x1b" not in done.stdout
    assert "loss" in done.stderr


@pytest.mark.parametrize(
    ("option", "value"), [("--steps", "0"), ("--steps", "x"), ("--seed", "-1")]
)
def test_wrong_values_are_wrong_usage(option, value, capsys):
    with pytest.raises(SystemExit) as end:
        main(["demo", option, value])
    assert end.value.code == 2
    said = capsys.readouterr().err
    assert said.startswith(f"regard: Invalid value for '{option}'")
    assert said.count("\n") == 1


def test_ctrl_c_shows_what_was_learnt_so_far():
    command = [sys.executable, "-c", INTERRUPTED]
    done = subprocess.run(
        command, capture_output=True, text=True, encoding="utf-8", check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    # Python hears a signal between two of its own instructions, so perhaps one step later.
    assert re.search(r"Stopped after [456] of 800 steps\.", done.stdout), done.stdout
    assert "a t t e n t i o n" in done.stdout


# Ctrl-C at a known moment: a signal to itself when the fifth step begins.
INTERRUPTED = f"""
import os
from regard.cli import demo
train = demo.training
def interrupted(*arguments):
    for step, loss in enumerate(train(*arguments), 1):
        if step == 5:
            os.kill(os.getpid(), {int(signal.SIGINT)})
        yield loss
demo.training = interrupted
from regard.cli.app import main
main(["demo"])
"""
