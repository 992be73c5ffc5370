"""`regard look`: what a run looked at while it wrote, or before it judged."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console

from regard.attend.attention import Attention
from regard.cli.look_caption import worded
from regard.cli.look_fold import looked_at_pairs, looked_at_residues
from regard.cli.look_learner import lived, recognised
from regard.cli.look_more import against, several, steps
from regard.cli.look_picture import patches
from regard.cli.maps import graded, map_of
from regard.cli.pager import paged
from regard.cli.trust import of_split, of_text
from regard.cli.whatif import what_if
from regard.config.whole import write_whole
from regard.corpora.corpus import Record
from regard.tasks.chat import Turn
from regard.train.answer import AnswerRun, record_of
from regard.train.bandit import BanditRun
from regard.train.bits import BitsRun
from regard.train.caption import CaptionRun
from regard.train.chat import ChatRun
from regard.train.classify import ClassifyRun, records_of
from regard.train.distance import DistanceRun
from regard.train.fewshot import FewshotRun
from regard.train.fold import FoldRun
from regard.train.image import ImageRun
from regard.train.language import LanguageRun
from regard.train.music import RollRun, beginning_of
from regard.train.run import Run
from regard.train.summarise import SummariseRun
from regard.train.tag import TagRun
from regard.train.translate import TranslateRun
from regard.view.files import form_of
from regard.view.map import AttentionMap
from regard.view.roll import pitch_name
from regard.view.shade import shaded
from regard.view.terminal import ROW_LABEL, Surface, heat, label, scale

SEEN = 0.05  # a word of a document that nobody gave as much of a look is not shown


Text = Annotated[
    str | None,
    typer.Argument(help="What to read; a question, a tab and its context; or a picture's file."),
]
Target = Annotated[str | None, typer.Option(help="Look at this output, not the model's own.")]
Files = Annotated[
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
Number = Annotated[int | None, typer.Option(help="In files: this one only, from 1.")]
Layer = Annotated[
    int | None, typer.Option(help="In files, or of a picture: this layer only, from 1.")
]
Gone = Annotated[
    list[str] | None,
    typer.Option(
        "--without",
        metavar="NAME[:HEAD]",
        help="What would be said without an attention or a head of it, as `regard heads` names "
        "them, or as L2.H3; again for another.",
    ),
]
Forced = Annotated[
    list[str] | None,
    typer.Option(
        "--force",
        metavar="WRITTEN->READ",
        help="What would be written if, for this word of the output, only that one of the text "
        "were looked at.",
    ),
]
Trusted = Annotated[
    bool,
    typer.Option(
        "--trust",
        help="How far this tells why: beside gradients, and by leaving out; without TEXT, in the "
        "mean over a split.",
    ),
]


Gold = Annotated[
    str | None,
    typer.Option(
        metavar="LINKS", help="Links that people made, as 0-0 1-2 2?1: what was found, and AER."
    ),
]
Beside = Annotated[
    Path | None, typer.Option(metavar="RUN", help="Another run, or checkpoint, side by side.")
]
Other = Annotated[
    str | None, typer.Option("--other", metavar="TEXT", help="Another text, side by side.")
]
Stepwise = Annotated[
    bool, typer.Option("--steps", help="Step by step, with what else might have been said.")
]
Shaped = Annotated[
    Literal["matrix", "heads", "bars", "arcs", "text", "strip"] | None,
    typer.Option("--shape", help="Of a picture, in the place of what suits it."),
]


def look(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.")],
    text: Text = None,
    target: Target = None,
    files: Files = None,
    layer: Layer = None,
    head: Number = None,
    words: Annotated[bool, typer.Option("--words", help="In files: whole words.")] = False,
    gradient: Annotated[
        bool, typer.Option("--gradient", help="In files: gradient x attention, not attention.")
    ] = False,
    shape: Shaped = None,
    gold: Gold = None,
    stepwise: Stepwise = False,
    beside: Beside = None,
    other: Other = None,
    gone: Gone = None,
    forced: Forced = None,
    trusted: Trusted = False,
    split: Annotated[str, typer.Option(help="With --trust and no TEXT: of which part.")] = "test",
    limit: Annotated[int, typer.Option(min=1, help="And of how many texts.")] = 100,
) -> None:
    """Give TEXT to a run and show what each token looked at, or what a verdict rests on."""
    run, console = Run.load(folder), Console()
    surface = Surface.of(console)
    if trusted:
        print(of_split(run, split, limit) if text is None else of_text(run, text))
        return
    if text is None:
        raise ValueError("TEXT is missing: what shall the run read?")
    if gone or forced:
        print(what_if(run, text, gone or (), forced or ()))
        return
    check_wishes(run, target, shape, layer, files)
    if beside is not None or other is not None:
        wishes = {"--gold": gold, "--steps": stepwise, "--shape": shape, "--head": head}
        check_together(files, {**wishes, "--words": words, "--gradient": gradient})
        both = [(folder, run, text)]
        both += [(beside, Run.load(beside), text)] if beside is not None else []
        both += [(folder, run, other)] if other is not None else []
        if files:
            maps = [(f"{path}: {one}", map_of(who, one, target)) for path, who, one in both]
            several(files, maps)
        else:
            seen = [shown(who, one, surface, target, layer) for _, who, one in both]
            paged("\n\n".join(seen), console)
    elif files:
        if stepwise:
            raise ValueError("--steps is for the terminal; the page of a text has a view of them")
        forms = {path: form_of(path, shape) for path in files}  # a wrong name fails before the work
        seen = graded(run, text) if gradient else map_of(run, text, target, gold)
        seen = seen.pick(layer, head)
        for path, form in forms.items():
            write_whole(path, form(seen.merged() if words else seen))
            print(f"{path}: written")
    elif stepwise:
        paged(steps(map_of(run, text, target, gold), surface), console)
    else:
        parts = [shown(run, text, surface, target, layer)]
        parts += [] if gold is None else [against(map_of(run, text, target, gold))]
        paged("\n\n".join(parts), console)


def check_wishes(
    run: Run, target: str | None, shape: str | None, layer: int | None, files: Files
) -> None:
    """What cannot be had together is said before anything is read."""
    if target is not None and not isinstance(run, TranslateRun | SummariseRun | CaptionRun):
        raise ValueError(
            f"--target is for translations, summaries or captions, not for {run.settings.task}"
        )
    if shape is not None and not files:
        raise ValueError("--shape is for pictures: give --save FILE with it")
    if layer is not None and not files and not isinstance(run, ImageRun):
        raise ValueError("--layer is for files, or for pictures: give --save FILE with it")


def check_together(files: Files, wishes: Mapping[str, Any]) -> None:
    """Side by side are whole maps, in the terminal or on a page."""
    if wrong := [path for path in files or () if path.suffix != ".html"]:
        raise ValueError(f"{wrong[0]}: side by side is a page: name it .html")
    if given := [name for name, wish in wishes.items() if wish not in (None, False)]:
        raise ValueError(f"{given[0]} does not go with --beside and --other")


def shown(run: Run, text: str, surface: Surface, target: str | None, layer: int | None) -> str:
    """In the terminal."""
    match run:
        case TranslateRun():
            run.check([text], "TEXT")
            return picture(run, text, surface, target)
        case SummariseRun():
            run.check([text], "TEXT")
            return summary(run, text, surface, target)
        case ClassifyRun():
            return judged(run, records_of([text])[0], surface)
        case TagRun():
            return named(run, text, surface)
        case ChatRun():
            return replied(run, text, surface)
        case AnswerRun():
            return found_in(run, record_of(text, "TEXT"), surface)
        case LanguageRun():
            return read(run, text, surface)
        case RollRun():
            return heard(run, text, surface)
        case ImageRun():
            return patches(run, text, surface, layer)
        case BitsRun():
            return remembered(run, text, surface)
        case BanditRun():
            return lived(run, text, surface)
        case FewshotRun():
            return recognised(run, text, surface)
        case CaptionRun():
            return worded(run, text, surface, target)
        case FoldRun():
            return looked_at_residues(run, text, surface)
        case DistanceRun():
            return looked_at_pairs(run, text, surface)
        case _:
            return last_layer(map_of(run, text), surface)


def last_layer(seen: AttentionMap, surface: Surface) -> str:
    """The mean of its heads."""
    table = seen.layers[-1].weights.mean(0).tolist()
    shown = heat(table, seen.queries.tokens, seen.keys.tokens, surface)
    return f"{seen.title}\n\n{shown}\n\nweight: {scale(surface)}"


def picture(run: TranslateRun, text: str, surface: Surface, target: str | None = None) -> str:
    """The output, and its map: rows are what was written, columns what was read."""
    if not run.model.cross:
        raise ValueError(f"model {run.settings.model.kind} has no attention to the source")
    if target is None:
        best = run(text)
        target, ids = best.text, best.ids
    else:
        ids = run.task.target.ids([target])[0]
    seen = run.task.align(text, ids)
    return (
        f"{text} -> {target}\n\n"
        f"{heat(seen.weights.tolist(), seen.target, seen.source, surface)}\n\n"
        f"weight: {scale(surface)}"
    )


def summary(run: SummariseRun, text: str, surface: Surface, target: str | None = None) -> str:
    """The summary and a map, of those words of the document that some word of it looked at.

    Behind each word, where it can be copied: p_gen, how far it was generated.
    """
    if not run.model.cross:
        raise ValueError(f"model {run.settings.model.kind} has no attention to the document")
    task = run.task
    if target is None:
        best = run(text)
        target, ids = best.text, best.ids
    else:
        [read] = task.read([text])
        [ids] = task.summaries([target], [read.words])
    seen, said = task.align(text, ids), task.said(text, ids)
    table = seen.weights.tolist()
    looked = [at for at, column in enumerate(zip(*table, strict=True)) if max(column) >= SEEN]
    rows = [
        f"{label(one.word, ROW_LABEL - 5, surface.ink)} {one.p_gen:.2f}" for one in said
    ] or seen.target
    shown = heat(
        [[row[at] for at in looked] for row in table],
        rows,
        [seen.source[at] for at in looked],
        surface,
    )
    told = f"{len(looked)} of {len(seen.source)} words, those with at least {SEEN:.0%} of a look"
    if said:
        told += "; behind a word of the summary: p_gen"
    return f"{target}\n\n{shown}\n\nweight: {scale(surface)}\n{told}"


def judged(run: ClassifyRun, record: Record, surface: Surface) -> str:
    """The verdict, and the text with its words shaded; before each sentence, its own weight.

    Where sentences have weights, a word is shaded by its weight times the root of its sentence's:
    what matters in a sentence that does not is seen, and seen to be weak (Yang et al. 2016, 3.5).
    """
    [verdict] = run.predict([record])
    parts = run.task.parts(record, run.longest)
    strengths = [[math.sqrt(part.weight) * w for w in part.weights] for part in parts]
    top = max(max(row, default=0.0) for row in strengths) or 1.0
    lines = []
    for part, row in zip(parts, strengths, strict=True):
        whole = part.weight if len(parts) > 1 else None
        lines.append(shaded(part.tokens, row, surface, top=top, whole=whole))
    share = verdict.probabilities[verdict.label]
    return (
        f"{verdict.label} ({share:.1%})\n\n" + "\n".join(lines) + f"\n\nweight: "
        f"{scale(surface, round(top, 3))}"
    )


def named(run: TagRun, text: str, surface: Surface) -> str:
    """The text with its names, and what each word looked at, or how much the whole did."""
    if not any(isinstance(part, Attention) for part in run.model.modules()):
        raise ValueError(f"model {run.settings.model.kind} has no attention to look at")
    [reply] = run.reply([text])
    words, seen = text.split(), run.task.looked(text, run.longest)
    between = [w[0] for w in seen.values() if w.shape[-1] == w.shape[-2] == len(words)]
    if between and words:
        table = between[-1].mean(0) if between[-1].ndim == 3 else between[-1]
        shown = heat(table.tolist(), words, words, surface)
        return f"{reply.text}\n\n{shown}\n\nweight: {scale(surface)}"
    weights = [w[0].mean(0) for w in seen.values()][-1].flatten()[: len(words)].tolist()
    top = max(weights, default=0.0) or 1.0
    return f"{reply.text}\n\n{shaded(words, weights, surface, top=top)}"


def replied(run: ChatRun, text: str, surface: Surface) -> str:
    """The reply, and a map: rows are its tokens, columns what was before and what it looked at."""
    if not any(isinstance(part, Attention) for part in run.model.modules()):
        raise ValueError(f"model {run.settings.model.kind} has no attention to look at")
    history = [Turn("user", text)]
    [said] = run.say([history])
    turns = run.after(history, said)
    before = len(run.task.start(turns[:-1], 0)) - 1  # the mark before the reply writes its first
    tokens, weights = run.task.looked_at(run.task.start(turns, 0)[:-1])
    shown = heat(weights[before:].tolist(), [*tokens[before + 1 :], "</s>"], tokens, surface)
    return f"{said.text}\n\n{shown}\n\nweight: {scale(surface)}"


def found_in(run: AnswerRun, record: Record, surface: Surface) -> str:
    """The answer in its context, and what the words around it looked at in the question."""
    [reply] = run.reply([f"{record['question']}\t{record['text']}"], "TEXT")
    seen = run.task.asks(record, run.longest)
    if seen is None:
        raise ValueError(f"model {run.settings.model.kind} has no attention to look at")
    shown = heat(seen.weights, seen.question, seen.context, surface)
    return f"{reply.text}\n\n{shown}\n\nweight: {scale(surface)}"


def read(run: LanguageRun, text: str, surface: Surface) -> str:
    """A map: rows are tokens, columns what they looked at, and what could come next."""
    tokens, weights = run.task.looked(text)
    following = ", ".join(f"{token!r} {p:.1%}" for token, p in run.task.next_tokens(text, 5))
    return (
        f"{heat(weights.tolist(), tokens, tokens, surface)}\n\n"
        f"weight: {scale(surface)}\nnext: {following}"
    )


def heard(run: RollRun, text: str, surface: Surface) -> str:
    """A map: rows are steps of a piece, columns what they looked at; and what could come next."""
    steps = beginning_of(text, "TEXT")
    weights = run.task.looked(steps)
    names = ["(begin)", *(" ".join(map(pitch_name, step)) or "(rest)" for step in steps)]
    following = ", ".join(
        f"{pitch_name(pitch)} {p:.1%}" for pitch, p in run.task.next_keys(steps, 5)
    )
    return (
        f"{heat(weights.tolist(), names, names, surface)}\n\n"
        f"weight: {scale(surface)}\nnext: {following}"
    )


def remembered(run: BitsRun, text: str, surface: Surface) -> str:
    """What is told, and a map for each head: rows are steps, columns the slots that it was at."""
    seen, [reply] = run.task.looked(text), run.reply([text], "TEXT")
    wrong = reply.facts["wrong"]
    parts = [f"{reply.text} ({wrong} {'bit' if wrong == 1 else 'bits'} wrong)"]
    for name, heads in seen.weights.items():
        for number, table in enumerate(heads.tolist(), 1):
            used = [at for at, slot in enumerate(zip(*table, strict=True)) if max(slot) >= SEEN]
            rows = [[row[at] for at in used] for row in table]
            title = f"{name}, head {number}, slots with at least {SEEN:.0%}:"
            parts.append(f"{title}\n{heat(rows, seen.steps, [*map(str, used)], surface)}")
    return "\n\n".join([*parts, f"weight: {scale(surface)}"])
