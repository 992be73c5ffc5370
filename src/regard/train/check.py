"""The data doctor: what a training would meet, found before it begins.

Two passes over the data, each in bounded memory. The first counts texts, by their hashes; the
second cuts them into tokens, of more than `count.TOKENISED` pairs only every second, third, …
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from regard.batch.batches import Batches, Stored
from regard.batch.forecast import Shape
from regard.batch.pair import Pair
from regard.config.settings import Settings
from regard.corpora.build import build as build_corpus
from regard.corpora.census import Census, is_far
from regard.corpora.corpus import Corpus, Record, place
from regard.tasks.summarise import Summariser
from regard.train.advice import advice
from regard.train.check_answer import check_questions
from regard.train.check_bandit import check_worlds
from regard.train.check_bits import check_bits
from regard.train.check_caption import check_captions
from regard.train.check_fewshot import check_episodes
from regard.train.check_fold import check_fold
from regard.train.check_image import check_pictures
from regard.train.check_music import check_music
from regard.train.check_text import check_documents, check_labelled
from regard.train.count import Shown, Side, chunks, count, every
from regard.train.measure import Memory, measure
from regard.train.pairs import SIDES, PairRun
from regard.train.run import prepare

NAMED = 3  # places that are named

# (settings, sizes of the vocabularies, the largest batch) -> what training it takes
Asked = Callable[[Settings, dict[str, int], Shape], Memory]


@dataclass
class Tokens:
    """A split cut into tokens: `pairs` are those that would be trained on, as lengths only."""

    every: int = 1  # one pair in so many was cut
    seen: int = 0
    left_out: int = 0
    far: int = 0  # of all pairs: it is told by characters
    far_at: list[int] = field(default_factory=list)
    source: Side = field(default_factory=Side)
    target: Side = field(default_factory=Side)
    pairs: list[Pair] = field(default_factory=list)

    def add(
        self, source: list[int], target: list[int], longest: tuple[int, int], cut: bool
    ) -> None:
        """`longest` of each side; what is longer is left out, or `cut`."""
        self.seen += 1
        self.source.add(source)
        self.target.add(target)
        if len(source) > longest[0] or len(target) > longest[1]:
            self.left_out += 1
            if not cut:
                return
        # a range is as long as its ids, and takes no room
        short = [
            range(min(len(s), most)) for s, most in zip((source, target), longest, strict=True)
        ]
        self.pairs.append(Pair(self.seen, short[0], short[1]))


def check(settings: Settings, shown: Shown, asked: Asked = measure) -> dict[str, Any]:
    """All that is to be told, as plain data; `regard.cli.check` prints it."""
    if settings.task in ("translate", "summarise"):
        return check_pairs(settings, shown, asked)
    return OTHERS[settings.task](settings, shown)


OTHERS = {
    "classify": check_labelled,
    "tag": check_labelled,
    "understand": check_labelled,
    "chat": check_documents,
    "answer": check_questions,
    "caption": check_captions,
    "image": check_pictures,
    "language": check_documents,
    "music": check_music,
    "fold": check_fold,
    "copy": check_bits,
    "recall": check_bits,
    "bandit": check_worlds,
    "fewshot": check_episodes,
    "pretrain": check_documents,
}


def check_pairs(settings: Settings, shown: Shown, asked: Asked) -> dict[str, Any]:
    """Pairs of texts, and the memory that training on them takes."""
    corpus = build_corpus(settings.data)
    counted = count(corpus, shown)
    run = prepare(settings, corpus)
    usual = counted["train"].usual_ratio()
    cut = {
        split: tokens_of(corpus, split, counted[split].pairs, usual, run, shown)
        for split in corpus.splits
    }
    if not cut["train"].pairs:
        raise ValueError("train: no pair is left; is the data empty, or train.longest small?")
    batches, largest = batched(settings, cut["train"])
    sizes = {f"{side}_size": getattr(run.task, side).size for side in SIDES}
    memory = asked(settings, sizes, largest)
    found = {
        "data": corpus.describe(),
        "splits": {s: told(corpus, s, counted[s], cut[s], settings.task) for s in corpus.splits},
        "batches": batches,
        "model": {
            "kind": settings.model.kind,
            "parameters": sum(p.numel() for p in run.model.parameters()),
            **sizes,
        },
        "memory": {**memory._asdict(), "shape": largest._asdict(), "peak": memory.peak},
    }
    return {**found, "warnings": list(advice(found, settings))}


def tokens_of(
    corpus: Corpus, split: str, total: int, usual: int, run: PairRun, shown: Shown
) -> Tokens:
    """The second pass. Lengths far off are told by characters, so that no pair is left out."""
    found, task = Tokens(every=every(total)), run.task
    short = isinstance(task, Summariser)  # summaries are: what is longer is cut
    longest = (run.longest, task.longest_summary if short else run.longest)

    def watched() -> Iterator[Record]:
        for number, record in enumerate(shown(f"cutting {split}", total, corpus.read(split))):
            if not short and is_far(record["source"], record["target"], usual):
                found.far += 1
                if len(found.far_at) < NAMED:
                    found.far_at.append(number)
            yield record

    for some in chunks(watched(), found.every):
        sides = (getattr(task, side).ids([r[side] for r in some]) for side in SIDES)
        for source, target in zip(*sides, strict=True):
            found.add(source, target, longest, short)
    return found


def batched(settings: Settings, tokens: Tokens) -> tuple[dict[str, Any], Shape]:
    """An epoch as training would cut it: how many batches, how much padding, the largest."""
    train = settings.train
    batches = Batches(
        Stored(tokens.pairs, settings.seed),
        tokens=train.tokens_per_batch,
        sentences=train.sentences_per_batch,
        seed=settings.seed,
    )
    shapes, real = list[Shape](), 0
    for group in batches.of_epoch():
        sides = [len(p.source) for p in group], [len(p.target) for p in group]
        real += sum(map(sum, sides)) + 2 * len(group)
        shapes.append(Shape(len(group), *(max(side) for side in sides)))
    room = sum(shape.rows * (shape.source + shape.target + 2) for shape in shapes)
    # Attention is of rows x source x target; all else of rows x (source + target).
    largest = max(shapes, key=lambda s: s.rows * (s.source + 1) * (s.target + 1))
    return {"per_epoch": len(shapes) * tokens.every, "padding": 1 - real / room}, largest


def told(corpus: Corpus, split: str, census: Census, tokens: Tokens, task: str) -> dict[str, Any]:
    """One split, as plain data."""
    twice, own = census.duplicates, census.own
    found: dict[str, Any] = {
        "pairs": census.pairs,
        "empty_source": census.empty_source,
        "empty_target": census.empty_target,
        "identical": census.identical,
        "duplicates": twice.repeated,
        "ambiguous_sources": twice.ambiguous,
        "one_source_in": twice.every,
        "replacement_characters": census.replacement_characters,
        "control_characters": census.control_characters,
        "not_nfc": census.not_nfc,
        "one_pair_in": tokens.every,
        "source": tokens.source.told(),
        "target": tokens.target.told(),
    }
    longer = tokens.left_out / max(tokens.seen, 1)
    if task == "summarise":
        found |= {"shortened": longer}
    else:
        found |= {"left_out": longer, "ratio_outliers": tokens.far}
    if split != "train":
        found |= {
            "compared": own.compared,
            "leaked_pairs": own.leaked_pairs,
            "leaked_sources": own.leaked_sources,
        }
    numbers = {name: [number] for name, number in census.first.items()}
    if tokens.far_at:
        numbers["ratio_outliers"] = tokens.far_at
    places = {name: [place(corpus, split, n) for n in some] for name, some in numbers.items()}
    return {**found, "places": places}
