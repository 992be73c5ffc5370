"""What a run looked at that learns within an episode: for `regard look`."""

from regard.attention.core import Attention
from regard.train.bandit import BanditRun
from regard.train.fewshot import FewshotRun
from regard.train.run import Run
from regard.view.attention_map import AttentionMap
from regard.view.terminal import Surface, render_heatmap, render_legend

QUERY = "(the query)"


def render_bandit(run: BanditRun, text: str, surface: Surface) -> str:
    """What is done next, and a map for each attention: rows are steps, columns those before."""
    check_has_attention(run)
    [reply], names = run.predict_lines([text], "TEXT"), run.task.step_names(text)
    parts = [f"next: {reply.text}"]
    for name, table in run.task.attention_weights(text).items():
        parts.append(f"{name}:\n{render_heatmap(table.tolist(), names, names, surface)}")
    return "\n\n".join([*parts, f"weight: {render_legend(surface)}"])


def bandit_map(run: BanditRun, text: str) -> AttentionMap:
    """Every attention, step by step."""
    check_has_attention(run)
    seen = run.task.attention_weights(text)
    return AttentionMap(seen, run.task.step_names(text), title=text or "(begin)")


def render_fewshot(run: FewshotRun, text: str, surface: Surface) -> str:
    """The class, and what the query looked at: rows are examples, columns are attentions."""
    check_has_attention(run)
    [reply], record = run.predict_lines([text], "TEXT"), run.parse_record(text, "TEXT")
    seen = run.task.attention_weights(record)
    shares = sorted(reply.data["probabilities"].items(), key=lambda pair: -pair[1])
    rows = [list(row) for row in zip(*(one[-1].tolist() for one in seen.values()), strict=True)]
    names = [name.removeprefix("learner.") for name in seen]
    shown = render_heatmap(rows, [*record["names"], QUERY], names, surface)
    verdict = ", ".join(f"{name} {share:.1%}" for name, share in shares)
    return f"{verdict}\n\nWhat {QUERY} looked at:\n{shown}\n\nweight: {render_legend(surface)}"


def fewshot_map(run: FewshotRun, text: str) -> AttentionMap:
    """Every attention, among the examples and the query."""
    check_has_attention(run)
    [reply], record = run.predict_lines([text], "TEXT"), run.parse_record(text, "TEXT")
    names = [*record["names"], QUERY]
    return AttentionMap(run.task.attention_weights(record), names, title=f"{reply.text}: {text}")


def check_has_attention(run: Run) -> None:
    if not any(isinstance(part, Attention) for part in run.model.modules()):
        raise ValueError(f"model {run.settings.model.kind} has no attention to look at")
