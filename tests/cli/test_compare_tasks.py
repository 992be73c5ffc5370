"""`regard compare` of any task, over seeds, and never with a run that was trained for longer."""

import csv
import json
from pathlib import Path
from statistics import mean, stdev

import pytest

from regard.cli.compare import compare
from regard.run import Run
from regard.tasks.catalogue import TASKS
from regard.training.log import read_log
from regard.view import chart

TEXT = "The cat sat. It saw a mouse.\nThe mouse ran away.\n\nA dog ran. It sat down on a log.\n\n"
TAGGED = """
task = "{}"
data = {{ kind = "tagged", train = "tagged", dev = "tagged", test = "tagged" }}
model = {{ kind = "birnn_attention", dim = 4, hidden_dim = 4 }}
train = {{ steps = 2, examples_per_batch = 4 }}
"""
CONFIGS = {
    "classify": """
task = "classify"
data.kind = "planted"
data.size = 20
data.held_out = 6
data.classes = 2
data.min_sentences = 2
data.max_sentences = 3
text = { kind = "words" }
model = { kind = "birnn", dim = 4, hidden_dim = 4 }
train = { steps = 2, examples_per_batch = 4, metric = "accuracy", validate_every = 1 }
""",
    "language": """
task = "language"
data = { kind = "text", train = "text.txt", unit = "paragraph" }
text = { kind = "characters" }
model = { kind = "rnnlm", dim = 4, hidden_dim = 4 }
train = { steps = 2, context_length = 8, examples_per_batch = 2 }
""",
    "pretrain": """
task = "pretrain"
data = { kind = "text", train = "text.txt", unit = "paragraph" }
text = { kind = "wordpiece", size = 60, lower = true }
model = { kind = "bert", dim = 4, heads = 2, layers = 1, pretrain = "both" }
train = { steps = 2, examples_per_batch = 8, max_tokens = 24 }
""",
    "music": """
task = "music"
data = { kind = "rolls", train = "rolls.jsonl", dev = "rolls.jsonl", test = "rolls.jsonl" }
model = { kind = "roll_gpt", dim = 4, heads = 2, layers = 1 }
train = { steps = 2, examples_per_batch = 4 }
""",
    "image": """
task = "image"
data = { kind = "shapes", size = 16, held_out = 6, side = 16 }
image = { size = [16, 16] }
model = { patch_size = 8, dim = 4, heads = 2, layers = 1 }
train = { steps = 2, examples_per_batch = 4 }
""",
    "copy": """
task = "copy"
data = { size = 20, held_out = 4, width = 2, max_vectors = 3, test_sizes = [2, 4] }
model = { kind = "ntm", dim = 4, slots = 6, slot_dim = 3 }
train = { steps = 2, examples_per_batch = 4 }
""",
    "recall": """
task = "recall"
data = { size = 20, held_out = 4, width = 2, vectors_per_item = 2, max_items = 3, test_sizes = [3] }
model = { kind = "lstm", dim = 4 }
train = { steps = 2, examples_per_batch = 4 }
""",
    "bandit": """
task = "bandit"
data = { arms = 2, steps = 3, held_out = 20 }
model = { kind = "snail", dim = 4, blocks = ["TC(3)", "A(2, 2)"] }
train = { steps = 2, rollout_environments = 8, examples_per_batch = 4, validate_every = 1 }
""",
    "fewshot": """
task = "fewshot"
data = { ways = 2, dim = 3, eval_episodes = 12 }
model = { kind = "snail", blocks = ["TC(3)", "A(2, 2)"] }
train = { steps = 2, examples_per_batch = 4, validate_every = 1 }
""",
    "caption": """
task = "caption"
data = { kind = "digits", size = 16, held_out = 6, side = 16 }
image = { size = [16, 16], channels = 1 }
model = { kind = "show_attend", dim = 4, image_dim = 4 }
train = { steps = 2, examples_per_batch = 4 }
decode = { kind = "greedy", max_length = 4 }
""",
    "fold": """
task = "fold"
data = { kind = "proteins", train = "some.fasta", dev = "some.fasta", test = "some.fasta" }
model = { kind = "msa", dim = 4, pair_dim = 4, heads = 1, pair_heads = 1, head_dim = 2, layers = 1 }
train = { steps = 2, examples_per_batch = 4 }
""",
    "tag": TAGGED.format("tag"),
    "understand": TAGGED.format("understand"),
    "summarize": """
task = "summarize"
data = { kind = "headlines", size = 30, held_out = 5 }
model = { kind = "pointer", dim = 4, hidden_dim = 4 }
train = { steps = 2, examples_per_batch = 8 }
decode = { kind = "greedy", max_length = 8 }
""",
    "answer": """
task = "answer"
data = { kind = "facts", size = 30, held_out = 5 }
model = { kind = "bidaf", dim = 4, hidden_dim = 4 }
train = { steps = 2, examples_per_batch = 8 }
""",
    "chat": """
task = "chat"
data = { kind = "dialogues", train = "talk.txt", dev = "talk.txt", test = "talk.txt" }
text = { kind = "words" }
model = { kind = "rnnlm", dim = 4 }
train = { steps = 2, examples_per_batch = 8 }
decode = { kind = "greedy", max_length = 4 }
""",
    "translate": """
data = { kind = "reorder", size = 30, held_out = 5, vocabulary_size = 8 }
text = { kind = "words" }
model = { kind = "luong", dim = 4 }
train = { steps = 2, examples_per_batch = 8 }
decode = { kind = "greedy", max_length = 8 }
""",
}
METRICS = {
    "answer": ["exact", "f1", "loss"],
    "chat": ["perplexity", "bleu", "distinct_1"],
    "classify": ["accuracy", "f1", "loss"],
    "caption": ["bleu1", "bleu4", "cider", "exact", "pointing", "perplexity"],
    "image": ["accuracy", "f1", "loss"],
    "language": ["perplexity", "loss", "bits_per_character"],
    "music": ["nll", "nll_all"],
    "copy": ["bits", "wrong", "bits_2", "bits_4"],
    "recall": ["bits", "wrong_3"],
    "fold": ["accuracy", "sov", "loss"],
    "bandit": ["return", "error", "random", "optimal", "known"],
    "fewshot": ["accuracy", "within", "nearest", "optimal", "loss"],
    "pretrain": ["accuracy", "perplexity", "next_sentence"],
    "tag": ["f1", "precision", "recall", "loss"],
    "understand": ["slot_f1", "intent_accuracy", "sentence_accuracy", "loss"],
    "summarize": ["rouge1", "rouge2", "rougeL", "repeated", "copied", "perplexity"],
    "translate": ["bleu", "chrf", "exact", "perplexity"],
}
COUNTED = {"classify": "texts", "language": "tokens", "pretrain": "pairs", "translate": "tokens"}
COUNTED |= {"answer": "questions", "chat": "tokens", "image": "images"}
COUNTED |= {"caption": "tokens", "fold": "residues"}
COUNTED |= {"tag": "words", "understand": "words", "summarize": "tokens", "music": "steps"}
COUNTED |= {"copy": "sequences", "recall": "sequences", "bandit": "worlds"}
COUNTED |= {"fewshot": "queries"}
ROWS = {"mean": mean, "deviation": stdev}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("text.txt").write_text(TEXT * 30)
    Path("rolls.jsonl").write_text("[[60, 64], [62]]\n[[65], [], [60, 67]]\n" * 4)
    Path("some.fasta").write_text(">a\nMKVLAAGDE\nCHHHHHHCC\n>b\nGGTVEVEKL\nCCEEEEECC\n")
    Path("talk.txt").write_text("hello\nhow are you\nfine\n\nbye\nbye then\n\n" * 4)
    Path("tagged").mkdir()
    Path("tagged/seq.in").write_text("fly to new york\ncall ada\n" * 6)
    Path("tagged/seq.out").write_text("O O B-city I-city\nO B-who\n" * 6)
    Path("tagged/label").write_text("travel\nphone\n" * 6)
    for task, text in CONFIGS.items():
        Path(f"{task}.toml").write_text(text)
    return tmp_path


@pytest.fixture
def undrawn(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(chart, "can_draw", lambda: False)
    return folder


def table() -> list[dict[str, str]]:
    return list(csv.DictReader(Path("runs/report/report.csv").read_text().splitlines()))


def test_every_task_is_compared():
    assert set(TASKS) == set(CONFIGS) == set(METRICS) == set(COUNTED)


@pytest.mark.parametrize("task", CONFIGS)
def test_every_task_over_seeds(task: str, undrawn: Path, capsys: pytest.CaptureFixture[str]):
    compare([f"{task}.toml"], sweep=["seed=1,2,3"], show_attention=True)
    *rows, middle, away = table()
    assert [row["name"] for row in rows] == ["seed=1", "seed=2", "seed=3"]
    speed = f"training_{COUNTED[task]}"
    for number, row in enumerate(rows, 1):
        place = Path(f"runs/{task},seed={number}")
        run = Run.load(place)
        scores = run.score("test")
        for metric in METRICS[task]:
            assert float(row[metric]) == pytest.approx(scores[metric]), metric
        steps = [entry for entry in read_log(place) if entry["kind"] == "step"]
        seconds = sum(step["seconds"] for step in steps)
        assert float(row["training_seconds"]) == pytest.approx(seconds)
        assert float(row[speed]) == pytest.approx(sum(step["tokens"] for step in steps) / seconds)
        assert int(row["parameters"]) == sum(p.numel() for p in run.model.parameters())
    for row, (kind, of) in zip((middle, away), ROWS.items(), strict=True):
        assert (row["name"], row["row"]) == (task, kind)
        for metric in [*METRICS[task], "training_seconds"]:
            wanted = of([float(one[metric]) for one in rows])
            assert float(row[metric]) == pytest.approx(wanted), metric
    assert any(len({row[metric] for row in rows}) == 3 for metric in METRICS[task])
    (group,) = json.loads(Path("runs/report/report.json").read_text())["seeds"]
    assert group["models"] == ["seed=1", "seed=2", "seed=3"]
    assert group["mean"][METRICS[task][0]] == float(middle[METRICS[task][0]])
    shown, written = capsys.readouterr().out, Path("runs/report/report.md").read_text()
    has_attention = Run.load(f"runs/{task},seed=1").task.has_attention()
    assert ("seed=1: " in shown) == has_attention
    assert "mean ± deviation" in shown
    assert shown.index("seed=3") < shown.index("mean ± deviation")
    assert f"| {task} | 3 |" in written
    assert ("BLEU" in written) == (task in ("translate", "chat"))


def test_a_table_for_each_group(undrawn: Path):
    Path("other.toml").write_text(CONFIGS["classify"].replace("hidden_dim = 4", "hidden_dim = 6"))
    compare(["classify.toml", "other.toml"], sweep=["seed=1,2"])
    groups = json.loads(Path("runs/report/report.json").read_text())["seeds"]
    assert {group["name"]: group["models"] for group in groups} == {
        name: [f"{name},seed=1", f"{name},seed=2"] for name in ("classify", "other")
    }


@pytest.mark.parametrize(
    ("words", "title"),
    [
        (["classify.toml"], "accuracy of dev"),
        (["language.toml", "train.validate_every=99"], "loss of train"),
    ],
)
def test_a_plot_of_learning(words: list[str], title: str, folder: Path):
    """By the metric of dev, or by the training loss if there is no validation."""
    compare(words)
    files = {"report.html", "report.md", "report.csv", "report.json", "learning.png"}
    assert {path.name for path in Path("runs/report").iterdir()} == files
    assert Path("runs/report/learning.png").read_bytes().startswith(b"\x89PNG")
    assert f"![{title} by step](<learning.png>)" in Path("runs/report/report.md").read_text()


def test_words_are_shaded_where_there_is_attention(undrawn: Path, capsys):
    compare(["classify.toml"], sweep=["model.pooling=attention,mean"], show_attention=True)
    shown = capsys.readouterr().out
    assert "pooling=attention: " in shown
    assert shown.count("weight: ") == 1


def test_options_of_another_task_are_refused(undrawn: Path):
    file = Path("text.txt")
    for words, says in (
        ({"join": 2}, "--join does not support the task classify"),
        ({"gold": file, "pairs": file}, "--gold does not support the task classify"),
    ):
        with pytest.raises(ValueError, match=says):
            compare(["classify.toml"], **words)
    with pytest.raises(ValueError, match="metrics: unknown setting"):
        compare(["classify.toml", "metrics.tokenize=none"])
    assert not Path("runs").exists()


def test_a_model_that_cannot_be_made_is_said_first(undrawn: Path):
    with pytest.raises(
        ValueError, match=r"classify,layer_decay=0\.5: start\.layer_decay is for a tr"
    ):
        compare(["classify.toml"], sweep=["start.layer_decay=1.0,0.5"])
    assert not Path("runs").exists()


def test_a_run_that_was_trained_for_longer_is_not_used(undrawn: Path):
    compare(["classify.toml", "train.steps=3"])
    before = (Path("runs/classify") / "log.jsonl").read_bytes()
    longer = "runs/classify: was trained for 3 steps, but its config ends after 2; train as long"
    with pytest.raises(ValueError, match=longer):
        compare(["classify.toml"])
    assert (Path("runs/classify") / "log.jsonl").read_bytes() == before
    compare(["classify.toml"], runs=Path("others"))
    compare(["classify.toml", "train.steps=3"])
