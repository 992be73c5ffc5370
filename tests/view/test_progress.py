"""Progress bars: in a terminal, in a file, in a notebook."""

from types import SimpleNamespace

import pytest

from regard.view import progress
from regard.view.progress import NotebookBar, progress_bar


def test_a_file_gets_the_messages_only(capsys):
    with progress_bar("training", 3) as bar:
        bar.update(1, "loss 1.0")
        bar.log("step 1: dev loss 2.0")
        bar.advance(2)
    captured = capsys.readouterr()
    assert captured.err == "step 1: dev loss 2.0\n"
    assert captured.out == ""


def test_a_file_gets_a_line_every_ten_seconds(capsys, monkeypatch):
    now = [100.0]
    # The clock of the module only: a server in another thread would sleep for hours.
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: now[0]))
    with progress_bar("training", None) as bar:
        bar.set_total(300)
        for step in range(1, 26):
            now[0] += 1
            bar.update(step, f"loss {step}.0")
    lines = capsys.readouterr().err.splitlines()
    assert lines == ["training 10/300  loss 10.0", "training 20/300  loss 20.0"]


def test_a_bar_that_is_disabled_prints_messages_only(capsys, monkeypatch):
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.0)
    with progress_bar("training", 3, enabled=False) as bar:
        bar.update(1, "loss")
        bar.log("a message")
    assert capsys.readouterr().err == "a message\n"


def test_a_notebook_gets_html(monkeypatch):
    """IPython's own display machinery receives the bar, then its updates."""
    pytest.importorskip("IPython")
    from IPython.core.interactiveshell import InteractiveShell
    from IPython.utils.capture import capture_output
    from traitlets.config import Config

    monkeypatch.setattr(progress, "SECONDS_BETWEEN_UPDATES", 0.0)
    InteractiveShell.instance(config=Config({"HistoryManager": {"enabled": False}}))
    try:
        with capture_output() as captured:
            bar = NotebookBar("training", 4)
            bar.update(2, "loss <1>")
            bar.log("step 2")
    finally:
        InteractiveShell.clear_instance()
    pages = [output.data["text/html"] for output in captured.outputs]
    assert '<progress max="4" value="0"></progress> 0/4' in pages[0]
    assert '<progress max="4" value="2"></progress> 2/4 loss &lt;1&gt;' in pages[-1]
    assert "step 2" in captured.stdout
