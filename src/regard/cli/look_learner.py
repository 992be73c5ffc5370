"""What a run looked at that learns within an episode: for `regard look`."""

from regard.attend.attention import Attention
from regard.train.bandit import BanditRun
from regard.view.map import AttentionMap
from regard.view.terminal import Surface, heat, scale


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


def check_looks(run: BanditRun) -> None:
    if not any(isinstance(part, Attention) for part in run.model.modules()):
        raise ValueError(f"model {run.settings.model.kind} has no attention to look at")
