"""`regard align`, in this process: what is read, chosen, printed and written, and what is wrong."""

import io
import json
import os
import sys
from pathlib import Path

import pytest

import regard
from regard.cli.align import align
from regard.data.build import build_corpus
from regard.metrics.alignment import SYMMETRIZATIONS, agreement_from_files
from regard.metrics.alignment_files import read_gold, read_links, write_links
from regard.run import Run
from regard.tasks.alignment import Aligner, WeightSelection, rank_by_gold
from regard.tasks.load import resolve_settings

PAIRS = [("the house", "das Haus"), ("the old man", "der alte Mann"), ("oh !", "ach !")]
TEXT = "".join(f"{source} ||| {target}\n" for source, target in PAIRS)
GOLD = "1-1 2-2\n1-1 2-2 3p3\n\n"
HANSARDS = Path(os.environ.get("REGARD_MIRROR", "nowhere"), "alignment", "wpt_enfr")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs without training, in both directions, and files of pairs and gold."""
    folder = tmp_path_factory.mktemp("align")
    (folder / "there.tsv").write_text("".join(f"{s}\t{t}\n" for s, t in PAIRS))
    (folder / "back.tsv").write_text("".join(f"{t}\t{s}\n" for s, t in PAIRS))
    model = {"kind": "transformer", "dim": 8, "heads": 2, "layers": 3}
    for name, data, own in (
        ("there", "there", model),
        ("back", "back", model),
        ("fixed", "there", {"kind": "encdec", "dim": 8}),
    ):
        files = {"kind": "files", "train": str(folder / f"{data}.tsv")}
        settings = resolve_settings({"data": files, "text": {"size": 40}, "model": own})
        Run.create(settings, build_corpus(settings.data)).save(folder / name)
    (folder / "pairs.txt").write_text(TEXT)
    (folder / "gold.txt").write_text(GOLD)
    return folder


@pytest.fixture(autouse=True)
def _there(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)


def found(
    way: WeightSelection, folder: str = "there", turned: bool = False
) -> list[frozenset[tuple[int, int]]]:
    return Aligner(Run.load(folder).task, target_to_source=turned).links(PAIRS, [way])[0]


def told(capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    """What stands behind each name on standard error."""
    lines = [line.split(maxsplit=1) for line in capsys.readouterr().err.splitlines()]
    return {line[0]: line[1] for line in lines if len(line) == 2}


def test_links_are_printed_in_order(capsys, tmp_path: Path):
    align(Path("there"), ["pairs.txt"], save=tmp_path / "out.align")
    assert capsys.readouterr().out == ""
    assert read_links(tmp_path / "out.align") == found(WeightSelection(1))
    align(Path("there"), ["pairs.txt"])
    assert capsys.readouterr().out == (tmp_path / "out.align").read_text()
    align(Path("there"), split="train", layer="1", head=2, shift=1, save=tmp_path / "out.align")
    assert read_links(tmp_path / "out.align") == found(WeightSelection(0, 1, 1))
    align(Path("there"), ["there.tsv"], layer="all", save=tmp_path / "out.align")
    assert read_links(tmp_path / "out.align") == found(WeightSelection(None))


def test_standard_input(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TEXT.encode())))
    align(Path("there"), ["-"], threshold=1e-9)
    lines = capsys.readouterr().out.splitlines()
    assert [len(line.split()) for line in lines] == [4, 9, 4]  # all words with all


def test_the_error_rate_and_its_signature(capsys, tmp_path: Path):
    align(Path("there"), ["pairs.txt"], gold=Path("gold.txt"), gold_base=1, save=tmp_path / "out")
    said = told(capsys)
    score = agreement_from_files(tmp_path / "out", "gold.txt", gold_base=1)
    for name in ("aer", "precision", "recall", "f1"):
        assert float(said[name]) == pytest.approx(getattr(score, name), abs=5e-5)
    version = regard.__version__
    assert said["signature"] == (
        f"aer|links:forward|layer:2|heads:mean|shift:0|method:best|sentences:3|v:{version}"
    )


@pytest.mark.parametrize("name", SYMMETRIZATIONS)
def test_two_directions(name: str, capsys, tmp_path: Path):
    out, said = tmp_path / "out", name.replace("_", "-")
    files = {"gold": Path("gold.txt"), "gold_base": 1, "save": out}
    align(Path("there"), ["pairs.txt"], reverse=Path("back"), symmetrize=said, shift=1, **files)
    both = (
        found(WeightSelection(1, None, 1)),
        found(WeightSelection(1, None, 1), "back", turned=True),
    )
    wanted = [SYMMETRIZATIONS[name](one, other) for one, other in zip(*both, strict=True)]
    assert read_links(out) == wanted
    assert f"|links:{said}|layer:2+2|heads:mean+mean|shift:1+1|" in told(capsys)["signature"]


def test_chosen_by_gold(capsys):
    options = {"dev": ["pairs.txt"], "dev_gold": Path("gold.txt"), "gold_base": 1}
    align(Path("there"), ["pairs.txt"], **options, gold=Path("gold.txt"), as_json=True)
    said = json.loads(capsys.readouterr().out)
    choices = rank_by_gold(Aligner(Run.load("there").task), PAIRS, read_gold("gold.txt", 1))
    assert [one["aer"] for one in said["tried"][0]] == [one.agreement.aer for one in choices]
    assert len(choices) == 2 * (1 + 3 + 6)
    assert said["aer"] == said["tried"][0][0]["aer"] == min(one["aer"] for one in said["tried"][0])
    assert said["sentences"] == 3
    assert len(said["alignments"]) == 3
    align(Path("there"), ["pairs.txt"], **options, reverse=Path("back"))
    lines = capsys.readouterr().err.splitlines()
    assert sum(line.endswith("selected") for line in lines) == 2
    assert sum(line.split()[:3] == ["layer", "heads", "shift"] for line in lines) == 2


def test_chosen_by_agreement(capsys, tmp_path: Path):
    align(
        Path("there"),
        ["pairs.txt"],
        reverse=Path("back"),
        symmetrize="intersection",
        dev=["pairs.txt"],
        save=tmp_path / "out",
        as_json=True,
    )
    said = json.loads(capsys.readouterr().out)
    assert "alignments" not in said
    assert "aer" not in said
    (tried,) = said["tried"]
    assert len(tried) == 8 * 8
    assert all(name in said for name in ("layer", "heads", "shift"))
    assert (said["layer"], said["shift"]) == (tried[0]["layer"], tried[0]["shift"])
    assert tried[0]["aer"] == min(one["aer"] for one in tried)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"folder": "fixed"}, "fixed: the run has no attention to a source; give one"),
        ({"pairs": ["bad.txt"]}, "bad.txt:2: 1 part, but source and target expected; separate"),
        ({"pairs": ["nowhere"]}, "nowhere: there is no such file"),
        ({"pairs": ["a", "b", "c"]}, "pairs must be in one file, or two (source, target), not 3"),
        ({"split": "tset"}, "split must be one of train, not 'tset'"),
        (
            {"gold": "gold.txt"},
            "gold.txt:1: link 2 to 2 is out of range: counted from 0, the pair ",
        ),
        ({"gold": "short.txt"}, "short.txt has 1 lines, but there are 3 sentences"),
        ({"layer": "7"}, "--layer must be from 1 to 3, not 7"),
        ({"layer": "0"}, "--layer must be from 1 to 3, not 0"),
        ({"layer": "1", "head": 0}, "--head must be from 1 to 2, not 0"),
        ({"layer": "1", "head": 3}, "--head must be from 1 to 2, not 3"),
        ({"layer": "top"}, "--layer must be a number from 1, or 'all', not 'top'"),
        ({"head": 1}, "--head needs --layer"),
        ({"shift": 2}, "shift must be 0 or 1, not 2"),
        ({"threshold": 0.0}, "threshold must be positive, not 0.0"),
        ({"symmetrize": "grow-diag-finl"}, "did you mean 'grow-diag-final'?"),
        ({"dev": ["pairs.txt"]}, "--dev needs --dev-gold, or --reverse"),
        ({"dev_gold": "gold.txt"}, "--dev-gold needs --dev"),
        ({"dev": ["pairs.txt"], "dev_gold": "gold.txt", "layer": "1"}, "--dev selects layer, head"),
        ({"save": "no/where/out"}, "no/where: there is no such folder"),
    ],
)
def test_what_goes_wrong_is_said_before_any_link(options, says: str, capsys):
    Path("bad.txt").write_text("a ||| b\nno bars\n")
    Path("short.txt").write_text("0-0\n")
    given = {"pairs": ["pairs.txt"], "folder": "there", **options}
    if "split" in given:
        given["pairs"] = None
    paths = {
        name: Path(given[name]) for name in ("folder", "gold", "dev_gold", "save") if name in given
    }
    with pytest.raises(ValueError) as error:
        align(**{**given, **paths})
    assert says in str(error.value)
    assert "\n" not in str(error.value)
    assert capsys.readouterr().out == ""


@pytest.mark.skipif(not HANSARDS.is_dir(), reason="REGARD_MIRROR has no alignment/wpt_enfr")
def test_the_hansards(tmp_path: Path, capsys):
    """447 pairs; the sure links beside the gold ones have an error rate of 0."""
    out = tmp_path / "out"
    gold = {"gold": HANSARDS / "enfr.gold", "gold_base": 1}
    align(Path("there"), [str(HANSARDS / "enfr.src-tgt")], **gold, save=out)
    assert "|sentences:447|" in told(capsys)["signature"]
    assert len(read_links(out)) == 447
    write_links(out, [one.sure for one in read_gold(HANSARDS / "enfr.gold", 1)])
    assert agreement_from_files(out, HANSARDS / "enfr.gold", gold_base=1).aer == 0.0
