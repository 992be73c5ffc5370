"""What a run looked at that learns within an episode: for `regard look`."""

from regard.attend.attention import Attention
from regard.train.bandit import BanditRun
from regard.train.fewshot import FewshotRun
from regard.train.run import Run
from regard.view.map import AttentionMap
from regard.view.terminal import Surface, heat, scale

QUERY = "(the query)"


def lived(run: BanditRun, text: str, surface: Surface) -> str:
    """What is done next, and a map for each attention: rows are steps, columns those before."""
    check_looks(run)
    [reply], names = run.reply([text], "TEXT"), run.task.named(text)
    parts = [f"next: {reply.text}"]
    for name, table in run.task.looked(text).items():
        parts.append(f"{name}:\n{heat(table.tolist(), names, names, surface)}")
    return "\n\n".join([*parts, f"weight: {scale(surface)}"])


def map_of_life(run: BanditRun, text: str) -> AttentionMap:
    """Every attention, step by step."""
    check_looks(run)
    seen = run.task.looked(text)
    return AttentionMap(seen, run.task.named(text), title=text or "(begin)")


def recognised(run: FewshotRun, text: str, surface: Surface) -> str:
    """The class, and what the query looked at: rows are examples, columns are attentions."""
    check_looks(run)
    [reply], record = run.reply([text], "TEXT"), run.read(text, "TEXT")
    seen = run.task.looked(record)
    shares = sorted(reply.facts["probabilities"].items(), key=lambda pair: -pair[1])
    rows = [list(row) for row in zip(*(one[-1].tolist() for one in seen.values()), strict=True)]
    names = [name.removeprefix("learner.") for name in seen]
    shown = heat(rows, [*record["names"], QUERY], names, surface)
    verdict = ", ".join(f"{name} {share:.1%}" for name, share in shares)
    return f"{verdict}\n\nWhat {QUERY} looked at:\n{shown}\n\nweight: {scale(surface)}"


def map_of_examples(run: FewshotRun, text: str) -> AttentionMap:
    """Every attention, among the examples and the query."""
    check_looks(run)
    [reply], record = run.reply([text], "TEXT"), run.read(text, "TEXT")
    names = [*record["names"], QUERY]
    return AttentionMap(run.task.looked(record), names, title=f"{reply.text}: {text}")


def check_looks(run: Run) -> None:
    if not any(isinstance(part, Attention) for part in run.model.modules()):
        raise ValueError(f"model {run.settings.model.kind} has no attention to look at")
