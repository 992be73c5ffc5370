"""`regard look`: what a run looked at while it wrote, or before it judged."""

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console

from regard.attention.core import Attention
from regard.cli.look_caption import render_caption
from regard.cli.look_fold import render_distances, render_fold
from regard.cli.look_learner import render_bandit, render_fewshot
from regard.cli.look_more import render_gold_table, render_step_table, write_side_by_side
from regard.cli.look_picture import render_image
from regard.cli.maps import attention_map, gradient_attention_map
from regard.cli.pager import print_paged
from regard.cli.trust import render_split_faithfulness, render_text_faithfulness
from regard.cli.whatif import render_counterfactual
from regard.data.corpus import Record
from regard.files import write_atomic
from regard.tasks.chat import Turn
from regard.train.answer import AnswerRun, parse_record
from regard.train.bandit import BanditRun
from regard.train.bits import BitsRun
from regard.train.caption import CaptionRun
from regard.train.chat import ChatRun
from regard.train.classify import ClassifyRun, parse_records
from regard.train.distance import DistanceRun
from regard.train.fewshot import FewshotRun
from regard.train.fold import FoldRun
from regard.train.image import ImageRun
from regard.train.language import LanguageRun
from regard.train.music import PianoRollRun, parse_beginning
from regard.train.run import Run
from regard.train.summarize import SummarizeRun
from regard.train.tag import TagRun
from regard.train.translate import TranslateRun
from regard.view.attention_map import AttentionMap
from regard.view.export import build_serializer
from regard.view.piano_roll import pitch_name
from regard.view.shaded_text import render_shaded_text
from regard.view.terminal import MAX_ROW_LABEL_CELLS, Surface, label, render_heatmap, render_legend

MIN_VISIBLE_WEIGHT = 0.05  # a word of a document that nobody gave as much of a look is not shown


TextArgument = Annotated[
    str | None,
    typer.Argument(help="What to read; a question, a tab and its context; or a picture's file."),
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
    int | None, typer.Option(help="In files, or of a picture: this layer only, from 1.")
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
    bool, typer.Option("--merge-subwords", help="In files: whole words.")
]
GradientAttentionOption = Annotated[
    bool,
    typer.Option("--gradient-attention", help="In files: gradient x attention, not attention."),
]
SplitOption = Annotated[str, typer.Option(help="With --faithfulness and no TEXT: of which part.")]


def look(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.")],
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
    split: SplitOption = "test",
    limit: Annotated[int, typer.Option(min=1, help="And of how many texts.")] = 100,
) -> None:
    """Give TEXT to a run and show what each token looked at, or what a verdict rests on."""
    run, console = Run.load(folder), Console()
    surface = Surface.from_console(console)
    if faithfulness and text is None:
        print(render_split_faithfulness(run, split, limit))
        return
    if text is None:
        raise ValueError("TEXT is missing: what shall the run read?")
    if faithfulness:
        print(render_text_faithfulness(run, text))
        return
    if ablate or force_attention:
        print(render_counterfactual(run, text, ablate or (), force_attention or ()))
        return
    check_options(run, target, style, layer, files)
    if compare_run is not None or compare_text is not None:
        others = {"--gold": gold, "--step-table": step_table, "--style": style, "--head": head}
        others |= {"--merge-subwords": merge_subwords, "--gradient-attention": gradient_attention}
        check_side_by_side_options(files, others)
        sources = [(folder, run, text)]
        sources += [(compare_run, Run.load(compare_run), text)] if compare_run is not None else []
        sources += [(folder, run, compare_text)] if compare_text is not None else []
        show_side_by_side(sources, files, target, layer, console)
    elif files:
        if step_table:
            reason = "the page of a text has a view of them"
            raise ValueError(f"--step-table is for the terminal; {reason}")
        # a wrong name fails before the work
        serializers = {path: build_serializer(path, style) for path in files}
        if gradient_attention:
            content = gradient_attention_map(run, text)
        else:
            content = attention_map(run, text, target, gold)
        content = content.pick(layer, head)
        write_files(serializers, content.merge_subwords() if merge_subwords else content)
    elif step_table:
        print_paged(render_step_table(attention_map(run, text, target, gold), surface), console)
    else:
        sections = [render(run, text, surface, target, layer)]
        if gold is not None:
            sections.append(render_gold_table(attention_map(run, text, target, gold)))
        print_paged("\n\n".join(sections), console)


def show_side_by_side(
    sources: Sequence[tuple[Path, Run, str]],
    files: SaveOption,
    target: str | None,
    layer: int | None,
    console: Console,
) -> None:
    """Each run with its text: whole maps on one page, or one below the other in the terminal."""
    if files:
        maps = [
            (f"{path}: {text}", attention_map(run, text, target)) for path, run, text in sources
        ]
        write_side_by_side(files, maps)
        return
    surface = Surface.from_console(console)
    sections = [render(run, text, surface, target, layer) for _, run, text in sources]
    print_paged("\n\n".join(sections), console)


def write_files(
    serializers: Mapping[Path, Callable[[AttentionMap], bytes]], content: AttentionMap
) -> None:
    for path, serializer in serializers.items():
        write_atomic(path, serializer(content))
        print(f"{path}: written")


def check_options(
    run: Run, target: str | None, style: str | None, layer: int | None, files: SaveOption
) -> None:
    """What cannot be had together is said before anything is read."""
    if target is not None and not isinstance(run, TranslateRun | SummarizeRun | CaptionRun):
        raise ValueError(
            f"--target is for translations, summaries or captions, not for {run.settings.task}"
        )
    if style is not None and not files:
        raise ValueError("--style is for pictures: give --save FILE with it")
    if layer is not None and not files and not isinstance(run, ImageRun):
        raise ValueError("--layer is for files, or for pictures: give --save FILE with it")


def check_side_by_side_options(files: SaveOption, options: Mapping[str, Any]) -> None:
    """Side by side are whole maps, in the terminal or on a page."""
    if non_html := [path for path in files or () if path.suffix != ".html"]:
        raise ValueError(f"{non_html[0]}: side by side is a page: name it .html")
    if incompatible := [name for name, value in options.items() if value not in (None, False)]:
        raise ValueError(f"{incompatible[0]} does not go with --compare-run and --compare-text")


def render(run: Run, text: str, surface: Surface, target: str | None, layer: int | None) -> str:
    """In the terminal."""
    match run:
        case TranslateRun():
            run.check_inputs([text], "TEXT")
            return render_translation(run, text, surface, target)
        case SummarizeRun():
            run.check_inputs([text], "TEXT")
            return render_summary(run, text, surface, target)
        case ClassifyRun():
            return render_classification(run, parse_records([text])[0], surface)
        case TagRun():
            return render_tags(run, text, surface)
        case ChatRun():
            return render_chat(run, text, surface)
        case AnswerRun():
            return render_answer(run, parse_record(text, "TEXT"), surface)
        case LanguageRun():
            return render_language(run, text, surface)
        case PianoRollRun():
            return render_music(run, text, surface)
        case ImageRun():
            return render_image(run, text, surface, layer)
        case BitsRun():
            return render_memory(run, text, surface)
        case BanditRun():
            return render_bandit(run, text, surface)
        case FewshotRun():
            return render_fewshot(run, text, surface)
        case CaptionRun():
            return render_caption(run, text, surface, target)
        case FoldRun():
            return render_fold(run, text, surface)
        case DistanceRun():
            return render_distances(run, text, surface)
        case _:
            return render_last_layer(attention_map(run, text), surface)


def render_last_layer(map_: AttentionMap, surface: Surface) -> str:
    """The mean of its heads."""
    weights = map_.layers[-1].weights.mean(0).tolist()
    heatmap = render_heatmap(weights, map_.queries.tokens, map_.keys.tokens, surface)
    return f"{map_.title}\n\n{heatmap}\n\nweight: {render_legend(surface)}"


def render_translation(
    run: TranslateRun, text: str, surface: Surface, target: str | None = None
) -> str:
    """The output, and its map: rows are what was written, columns what was read."""
    if not run.model.cross_attentions:
        raise ValueError(f"model {run.settings.model.kind} has no attention to the source")
    if target is None:
        best = run(text)
        target, ids = best.text, best.ids
    else:
        ids = run.task.target.encode_ids([target])[0]
    weights, rows, columns = (a := run.task.alignment(text, ids)).weights, a.target, a.source
    heatmap = render_heatmap(weights.tolist(), rows, columns, surface)
    return f"{text} -> {target}\n\n{heatmap}\n\nweight: {render_legend(surface)}"


def render_summary(
    run: SummarizeRun, text: str, surface: Surface, target: str | None = None
) -> str:
    """The summary and a map, of those words of the document that some word of it looked at.

    Behind each word, where it can be copied: p_gen, how far it was generated.
    """
    if not run.model.cross_attentions:
        raise ValueError(f"model {run.settings.model.kind} has no attention to the document")
    task = run.task
    if target is None:
        best = run(text)
        target, ids = best.text, best.ids
    else:
        [document] = task.encode_documents([text])
        [ids] = task.encode_summaries([target], [document.words])
    alignment, copy_trace = task.alignment(text, ids), task.copy_traces(text, ids)
    table = alignment.weights.tolist()
    attended = [
        index
        for index, column in enumerate(zip(*table, strict=True))
        if max(column) >= MIN_VISIBLE_WEIGHT
    ]
    rows = [
        f"{label(entry.word, MAX_ROW_LABEL_CELLS - 5, surface.ink)} {entry.p_gen:.2f}"
        for entry in copy_trace
    ] or alignment.target
    heatmap = render_heatmap(
        [[row[index] for index in attended] for row in table],
        rows,
        [alignment.source[index] for index in attended],
        surface,
    )
    note = (
        f"{len(attended)} of {len(alignment.source)} words, those with at least "
        f"{MIN_VISIBLE_WEIGHT:.0%} of a look"
    )
    if copy_trace:
        note += "; behind a word of the summary: p_gen"
    return f"{target}\n\n{heatmap}\n\nweight: {render_legend(surface)}\n{note}"


def render_classification(run: ClassifyRun, record: Record, surface: Surface) -> str:
    """The verdict, and the text with its words shaded; before each sentence, its own weight.

    Where sentences have weights, a word is shaded by its weight times the root of its sentence's:
    what matters in a sentence that does not is seen, and seen to be weak (Yang et al. 2016, 3.5).
    """
    [prediction] = run.predict([record])
    parts = run.task.weighted_sentences(record, run.max_tokens)
    strengths = [[math.sqrt(part.weight) * w for w in part.weights] for part in parts]
    top = max(max(row, default=0.0) for row in strengths) or 1.0
    lines = []
    for part, row in zip(parts, strengths, strict=True):
        sentence_weight = part.weight if len(parts) > 1 else None
        lines.append(
            render_shaded_text(
                part.tokens, row, surface, max_weight=top, total_weight=sentence_weight
            )
        )
    share = prediction.probabilities[prediction.label]
    return (
        f"{prediction.label} ({share:.1%})\n\n" + "\n".join(lines) + f"\n\nweight: "
        f"{render_legend(surface, round(top, 3))}"
    )


def render_tags(run: TagRun, text: str, surface: Surface) -> str:
    """The text with its names, and what each word looked at, or how much the whole did."""
    if not any(isinstance(part, Attention) for part in run.model.modules()):
        raise ValueError(f"model {run.settings.model.kind} has no attention to look at")
    [prediction] = run.predict_lines([text])
    words, attention = text.split(), run.task.attention_weights(text, run.max_tokens)
    token_attention = [w[0] for w in attention.values() if w.shape[-1] == w.shape[-2] == len(words)]
    if token_attention and words:
        table = (
            token_attention[-1].mean(0) if token_attention[-1].ndim == 3 else token_attention[-1]
        )
        heatmap = render_heatmap(table.tolist(), words, words, surface)
        return f"{prediction.text}\n\n{heatmap}\n\nweight: {render_legend(surface)}"
    weights = [w[0].mean(0) for w in attention.values()][-1].flatten()[: len(words)].tolist()
    top = max(weights, default=0.0) or 1.0
    return f"{prediction.text}\n\n{render_shaded_text(words, weights, surface, max_weight=top)}"


def render_chat(run: ChatRun, text: str, surface: Surface) -> str:
    """The reply, and a map: rows are its tokens, columns what was before and what it looked at."""
    if not any(isinstance(part, Attention) for part in run.model.modules()):
        raise ValueError(f"model {run.settings.model.kind} has no attention to look at")
    history = [Turn("user", text)]
    [reply] = run.generate_replies([history])
    turns = run.extended_history(history, reply)
    prefix_length = (
        len(run.task.prompt_ids(turns[:-1], 0)) - 1
    )  # the mark before the reply writes its first
    tokens, weights = run.task.ids_attention(run.task.prompt_ids(turns, 0)[:-1])
    heatmap = render_heatmap(
        weights[prefix_length:].tolist(), [*tokens[prefix_length + 1 :], "</s>"], tokens, surface
    )
    return f"{reply.text}\n\n{heatmap}\n\nweight: {render_legend(surface)}"


def render_answer(run: AnswerRun, record: Record, surface: Surface) -> str:
    """The answer in its context, and what the words around it looked at in the question."""
    [prediction] = run.predict_lines([f"{record['question']}\t{record['text']}"], "TEXT")
    attention = run.task.question_attention(record, run.max_tokens)
    if attention is None:
        raise ValueError(f"model {run.settings.model.kind} has no attention to look at")
    heatmap = render_heatmap(attention.weights, attention.question, attention.context, surface)
    return f"{prediction.text}\n\n{heatmap}\n\nweight: {render_legend(surface)}"


def render_language(run: LanguageRun, text: str, surface: Surface) -> str:
    """A map: rows are tokens, columns what they looked at, and what could come next."""
    tokens, weights = run.task.text_attention(text)
    following = ", ".join(f"{token!r} {p:.1%}" for token, p in run.task.next_tokens(text, 5))
    return (
        f"{render_heatmap(weights.tolist(), tokens, tokens, surface)}\n\n"
        f"weight: {render_legend(surface)}\nnext: {following}"
    )


def render_music(run: PianoRollRun, text: str, surface: Surface) -> str:
    """A map: rows are steps of a piece, columns what they looked at; and what could come next."""
    steps = parse_beginning(text, "TEXT")
    weights = run.task.attention_weights(steps)
    names = ["(begin)", *(" ".join(map(pitch_name, step)) or "(rest)" for step in steps)]
    following = ", ".join(
        f"{pitch_name(pitch)} {p:.1%}" for pitch, p in run.task.next_keys(steps, 5)
    )
    return (
        f"{render_heatmap(weights.tolist(), names, names, surface)}\n\n"
        f"weight: {render_legend(surface)}\nnext: {following}"
    )


def render_memory(run: BitsRun, text: str, surface: Surface) -> str:
    """What is told, and a map for each head: rows are steps, columns the slots that it was at."""
    trace, [prediction] = run.task.step_attention(text), run.predict_lines([text], "TEXT")
    wrong_bits = prediction.data["wrong"]
    sections = [f"{prediction.text} ({wrong_bits} {'bit' if wrong_bits == 1 else 'bits'} wrong)"]
    for name, heads in trace.weights.items():
        for number, table in enumerate(heads.tolist(), 1):
            used_slots = [
                slot_index
                for slot_index, slot in enumerate(zip(*table, strict=True))
                if max(slot) >= MIN_VISIBLE_WEIGHT
            ]
            rows = [[row[slot_index] for slot_index in used_slots] for row in table]
            title = f"{name}, head {number}, slots with at least {MIN_VISIBLE_WEIGHT:.0%}:"
            sections.append(
                f"{title}\n{render_heatmap(rows, trace.steps, [*map(str, used_slots)], surface)}"
            )
    return "\n\n".join([*sections, f"weight: {render_legend(surface)}"])
