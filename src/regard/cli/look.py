"""`regard look`: the attention of a run, in the terminal or in files."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console

from regard.cli.faithfulness import render_split_faithfulness, render_text_faithfulness
from regard.cli.options import RunArgument, SetOption
from regard.cli.pager import print_paged
from regard.explain.counterfactual import render_counterfactual
from regard.explain.gradients import gradient_attention_map
from regard.files import write_atomic
from regard.run import Run
from regard.view.attention_map import AttentionMap
from regard.view.export import build_serializer
from regard.view.map_tables import render_gold_table, render_step_table
from regard.view.page import side_by_side_page
from regard.view.terminal import Surface

TextArgument = Annotated[
    str | None,
    typer.Argument(help="What to read; a question, a tab and its context; or an image's file."),
]
TargetOption = Annotated[str | None, typer.Option(help="Look at this output, not the model's own.")]
SaveOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--save",
        "--html",
        "--png",
        "--svg",
        metavar="FILE",
        help="Write a page (.html), a picture (.png, .svg, .pdf), the weights (.npz, .json, .csv), "
        "TikZ (.tex) or links (.pharaoh), instead; again for another.",
    ),
]
HeadOption = Annotated[int | None, typer.Option(help="In files: this one only, from 1.")]
LayerOption = Annotated[
    int | None, typer.Option(help="In files, or of an image: this layer only, from 1.")
]
AblateOption = Annotated[
    list[str] | None,
    typer.Option(
        "--ablate",
        metavar="NAME[:HEAD]",
        help="What would be said without an attention or a head of it, as `regard heads` names "
        "them, or as L2.H3; again for another.",
    ),
]
ForceAttentionOption = Annotated[
    list[str] | None,
    typer.Option(
        "--force-attention",
        metavar="WRITTEN->READ",
        help="What would be written if, for this word of the output, only that one of the text "
        "were looked at.",
    ),
]
FaithfulnessOption = Annotated[
    bool,
    typer.Option(
        "--faithfulness",
        help="How far this tells why: beside gradients, and by leaving out; without TEXT, in the "
        "mean over a split.",
    ),
]


GoldOption = Annotated[
    str | None,
    typer.Option(
        metavar="LINKS", help="Links that people made, as 0-0 1-2 2?1: what was found, and AER."
    ),
]
CompareRunOption = Annotated[
    Path | None, typer.Option(metavar="RUN", help="Another run, or checkpoint, side by side.")
]
CompareTextOption = Annotated[
    str | None, typer.Option("--compare-text", metavar="TEXT", help="Another text, side by side.")
]
StepTableOption = Annotated[
    bool, typer.Option("--step-table", help="Step by step, with what else might have been said.")
]
StyleOption = Annotated[
    Literal["matrix", "heads", "bars", "arcs", "text", "strip"] | None,
    typer.Option("--style", help="Of a picture, in the place of what suits it."),
]


MergeSubwordsOption = Annotated[
    bool, typer.Option("--merge-subwords", help="Merge subwords to words. For --save.")
]
GradientAttentionOption = Annotated[
    bool, typer.Option("--gradient-attention", help="Save gradient x attention instead.")
]
FaithfulnessSplitOption = Annotated[
    str, typer.Option("--split", help="Split for --faithfulness without TEXT.")
]
FaithfulnessLimitOption = Annotated[
    int, typer.Option("--limit", min=1, help="Texts for --faithfulness without TEXT.")
]


def look(
    folder: RunArgument,
    text: TextArgument = None,
    target: TargetOption = None,
    files: SaveOption = None,
    layer: LayerOption = None,
    head: HeadOption = None,
    merge_subwords: MergeSubwordsOption = False,
    gradient_attention: GradientAttentionOption = False,
    style: StyleOption = None,
    gold: GoldOption = None,
    step_table: StepTableOption = False,
    compare_run: CompareRunOption = None,
    compare_text: CompareTextOption = None,
    ablate: AblateOption = None,
    force_attention: ForceAttentionOption = None,
    faithfulness: FaithfulnessOption = False,
    split: FaithfulnessSplitOption = "test",
    limit: FaithfulnessLimitOption = 100,
    overrides: SetOption = None,
) -> None:
    """Show what a run attends to while it reads TEXT and predicts."""
    run, console = Run.load(folder).override(overrides or ()), Console()
    surface = Surface.from_console(console)
    if faithfulness and text is None:
        print(render_split_faithfulness(run, split, limit))
        return
    if text is None:
        raise ValueError("TEXT is missing; give the input that the run shall read")
    if faithfulness:
        print(render_text_faithfulness(run, text))
        return
    if ablate or force_attention:
        print(render_counterfactual(run, text, ablate or (), force_attention or ()))
        return
    check_options(run, target, style, layer, files)
    if compare_run is not None or compare_text is not None:
        single = {"--gold": gold, "--step-table": step_table, "--style": style, "--head": head}
        single |= {"--merge-subwords": merge_subwords, "--gradient-attention": gradient_attention}
        check_side_by_side_options(files, single)
        inputs = [(folder, run, text)]
        inputs += [(compare_run, Run.load(compare_run), text)] if compare_run is not None else []
        inputs += [(folder, run, compare_text)] if compare_text is not None else []
        show_side_by_side(inputs, files, console, target, layer)
        return
    if files:
        check_not_step_table(step_table)
        serializers = {path: build_serializer(path, style) for path in files}  # checks the names
        attention = (
            gradient_attention_map(run, text)
            if gradient_attention
            else attention_map(run, text, target, gold)
        ).pick(layer, head)
        write_map(attention.merge_subwords() if merge_subwords else attention, serializers)
    elif step_table:
        print_paged(render_step_table(attention_map(run, text, target, gold), surface), console)
    else:
        sections = [render(run, text, surface, target, layer)]
        if gold is not None:
            sections.append(render_gold_table(attention_map(run, text, target, gold)))
        print_paged("\n\n".join(sections), console)


def attention_map(run: Run, text: str, target: str | None, gold: str | None = None) -> AttentionMap:
    """Return the attention for a text, with gold links if they are given."""
    record = run.records([text], "TEXT")[0]
    attention = run.task.attention_map(record, target)
    return attention if gold is None else attention.with_gold(gold)


def render(run: Run, text: str, surface: Surface, target: str | None, layer: int | None) -> str:
    record = run.records([text], "TEXT")[0]
    return run.task.render(record, surface, target=target, layer=layer)


def write_map(
    attention: AttentionMap, serializers: Mapping[Path, Callable[[AttentionMap], bytes]]
) -> None:
    """Write a map to each file, in its format."""
    for path, serializer in serializers.items():
        write_atomic(path, serializer(attention))
        print(f"{path}: written")


def show_side_by_side(
    inputs: Sequence[tuple[Path, Run, str]],
    files: Sequence[Path] | None,
    console: Console,
    target: str | None,
    layer: int | None,
) -> None:
    """Show several maps in one page, or one below the other in the terminal."""
    if not files:
        surface = Surface.from_console(console)
        shown = [render(run, text, surface, target, layer) for _, run, text in inputs]
        print_paged("\n\n".join(shown), console)
        return
    maps = [(f"{path}: {text}", attention_map(run, text, target)) for path, run, text in inputs]
    page = side_by_side_page(maps).encode()
    for path in files:
        write_atomic(path, page)
        print(f"{path}: written")


def check_options(
    run: Run,
    target: str | None,
    style: str | None,
    layer: int | None,
    files: Sequence[Path] | None,
) -> None:
    """Raise an error for options that do not fit together, before anything is computed."""
    if target is not None and not run.task.accepts_target:
        raise ValueError(f"--target does not support the task {run.task.name}")
    if style is not None and not files:
        raise ValueError("--style is for pictures; give --save FILE with it")
    if layer is not None and not files and not run.task.accepts_layer:
        raise ValueError("--layer is for files; give --save FILE with it")


def check_not_step_table(step_table: bool) -> None:
    if step_table:
        raise ValueError("--step-table is for the terminal; the HTML page has a view of it")


def check_side_by_side_options(files: Sequence[Path] | None, single: Mapping[str, Any]) -> None:
    """Raise an error for options of a single map."""
    if wrong := [path for path in files or () if path.suffix != ".html"]:
        raise ValueError(f"{wrong[0]}: maps side by side are a page; name it .html")
    if given := [name for name, value in single.items() if value not in (None, False)]:
        raise ValueError(f"{given[0]} does not go with --compare-run and --compare-text")
