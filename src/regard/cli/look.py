"""`regard look`: show the attention of a run in the terminal, or save it to files."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console

from regard.cli.faithfulness import render_split_faithfulness, render_text_faithfulness
from regard.cli.options import DeviceOption, RunArgument, SetOption
from regard.cli.pager import print_paged
from regard.errors import InputError
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
    typer.Argument(
        metavar="TEXT",
        help="Input of the run: a text; a question, a tab and its context; or the path of an "
        "image.",
    ),
]
TargetOption = Annotated[
    str | None,
    typer.Option(metavar="TEXT", help="Output to explain. Default: the prediction of the run."),
]
SaveOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--save",
        "--html",
        "--png",
        "--svg",
        metavar="FILE",
        help="Save the attention to a file instead of printing it: a web page (.html), a plot "
        "(.png, .svg, .pdf), weights (.npz, .json, .csv), TikZ (.tex) or word links (.pharaoh). "
        "Repeatable.",
    ),
]
HeadOption = Annotated[
    int | None, typer.Option(help="Save only this head (from 1). Needs --save. Default: all.")
]
LayerOption = Annotated[
    int | None,
    typer.Option(
        help="Show only this layer (from 1). Needs --save, or an image run. Default: all."
    ),
]
AblateOption = Annotated[
    list[str] | None,
    typer.Option(
        "--ablate",
        metavar="NAME[:HEAD]",
        help="Print the prediction without this attention, or without one head of it. Names are "
        "those of `regard heads`, or short: L2.H3 is head 3 of layer 2. Repeatable.",
    ),
]
ForceAttentionOption = Annotated[
    list[str] | None,
    typer.Option(
        "--force-attention",
        metavar="OUTPUT->INPUT",
        help="Print the prediction if this output word attended only to this input word. "
        "Repeatable.",
    ),
]
FaithfulnessOption = Annotated[
    bool,
    typer.Option(
        "--faithfulness",
        help="Test whether attention explains the prediction: compare it with gradients and "
        "leave-one-out. Without TEXT, average over a split.",
    ),
]
GoldLinksOption = Annotated[
    str | None,
    typer.Option(
        metavar="LINKS",
        help="Gold word links such as `0-0 1-2 2?1` (? for a possible link): compare them with "
        "the attention, and print the alignment error rate.",
    ),
]
CompareRunOption = Annotated[
    Path | None,
    typer.Option(metavar="RUN", help="Second run, or checkpoint, to show side by side."),
]
CompareTextOption = Annotated[
    str | None,
    typer.Option("--compare-text", metavar="TEXT", help="Second input to show side by side."),
]
StepTableOption = Annotated[
    bool,
    typer.Option(
        "--step-table",
        help="Print a table of the output tokens, with their most likely alternatives.",
    ),
]
StyleOption = Annotated[
    Literal["matrix", "heads", "bars", "arcs", "text", "strip"] | None,
    typer.Option("--style", help="Style of a saved plot. Default: depends on the kind of map."),
]
MergeSubwordsOption = Annotated[
    bool, typer.Option("--merge-subwords", help="Merge subwords into words. Needs --save.")
]
GradientAttentionOption = Annotated[
    bool,
    typer.Option(
        "--gradient-attention",
        help="Save attention weights times their gradients. Needs --save.",
    ),
]
FaithfulnessSplitOption = Annotated[
    str, typer.Option("--split", help="Split that --faithfulness averages over without TEXT.")
]
FaithfulnessLimitOption = Annotated[
    int,
    typer.Option(
        "--limit", min=1, help="Number of texts that --faithfulness averages over without TEXT."
    ),
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
    gold: GoldLinksOption = None,
    step_table: StepTableOption = False,
    compare_run: CompareRunOption = None,
    compare_text: CompareTextOption = None,
    ablate: AblateOption = None,
    force_attention: ForceAttentionOption = None,
    faithfulness: FaithfulnessOption = False,
    split: FaithfulnessSplitOption = "test",
    limit: FaithfulnessLimitOption = 100,
    device: DeviceOption = None,
    overrides: SetOption = None,
) -> None:
    """Show the attention of a run while it reads TEXT and predicts."""
    run = Run.load(folder, device=device or "auto").override(overrides or ())
    console = Console()
    surface = Surface.from_console(console)
    if faithfulness:
        print(render_faithfulness(run, text, split, limit))
        return
    if text is None:
        raise InputError("TEXT is missing; give an input for the run")
    if ablate or force_attention:
        print(render_counterfactual(run, text, ablate or (), force_attention or ()))
        return
    check_options(run, target, style, layer, files)
    if compare_run is not None or compare_text is not None:
        single = {"--gold": gold, "--step-table": step_table, "--style": style, "--head": head}
        single |= {"--merge-subwords": merge_subwords, "--gradient-attention": gradient_attention}
        check_side_by_side_options(files, single)
        inputs = [(folder, run, text)]
        if compare_run is not None:
            inputs.append((compare_run, Run.load(compare_run, device=run.device), text))
        inputs += [(folder, run, compare_text)] if compare_text is not None else []
        show_side_by_side(inputs, files, console, target, layer)
        return
    if files:
        check_not_step_table(step_table)
        serializers = {path: build_serializer(path, style) for path in files}  # checks file names
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


def render_faithfulness(run: Run, text: str | None, split: str, limit: int) -> str:
    """Return the tests of a text, or their average over a split."""
    if text is None:
        return render_split_faithfulness(run, split, limit)
    return render_text_faithfulness(run, text)


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
    """Write several maps to one page, or print them in the terminal, one below another."""
    if not files:
        surface = Surface.from_console(console)
        maps = [render(run, text, surface, target, layer) for _, run, text in inputs]
        print_paged("\n\n".join(maps), console)
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
    """Check that the options fit together, before anything is computed."""
    if target is not None and not run.task.accepts_target:
        raise InputError(f"--target does not support the task {run.task.name}; leave it out")
    if style is not None and not files:
        raise InputError("--style is for saved plots; give --save FILE with it")
    if layer is not None and not files and not run.task.accepts_layer:
        raise InputError("--layer is for saved files; give --save FILE with it")


def check_not_step_table(step_table: bool) -> None:
    if step_table:
        raise InputError(
            "--step-table is for the terminal; leave it out: the page of --save x.html has it"
        )


def check_side_by_side_options(files: Sequence[Path] | None, single: Mapping[str, object]) -> None:
    """Check that no option is given that is for a single map only."""
    if other_files := [path for path in files or () if path.suffix != ".html"]:
        raise InputError(f"{other_files[0]}: maps side by side need a web page; name it .html")
    if given := [name for name, value in single.items() if value not in (None, False)]:
        raise InputError(
            f"{given[0]} does not go with --compare-run and --compare-text; leave it out"
        )
