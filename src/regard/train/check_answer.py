"""The data doctor for questions with their contexts."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from regard.batch.batches import Batches, Stored
from regard.batch.pair import Pair
from regard.config.settings import Settings
from regard.corpora.build import build as build_corpus
from regard.corpora.corpus import Corpus, Record
from regard.tasks.answer_inputs import Cut, covered, numbers
from regard.train.advice import on_questions
from regard.train.answer import AnswerRun
from regard.train.check_text import model_of, odd, unknown_of
from regard.train.count import Shown, Side, chunks, count, every
from regard.train.run import prepare


@dataclass
class Asked:
    """Questions of a split in tokens."""

    every: int = 1
    seen: int = 0
    windowed: int = 0  # whose context is read in several windows
    long: int = 0  # with an answer that is longer than head.longest
    inexact: int = 0  # with an answer that ends inside of a token
    question: Side = field(default_factory=Side)
    text: Side = field(default_factory=Side)
    pairs: list[Pair] = field(default_factory=list)

    def add(self, run: AnswerRun, record: Record, question: Cut, context: Cut) -> None:
        text, plain = run.vocabularies["text"], run.task.layout.packed
        for side, one in ((self.question, question), (self.text, context)):
            side.add(one.parts if plain else numbers(text, one.parts), unknown_of(text))
        found = list(run.task.windows(question, context, run.longest))
        self.windowed += len(found) > 1
        for answer in record["answers"][:1]:
            end = answer["start"] + len(answer["text"])
            first, last = covered(context.places, answer["start"], end) or (0, -1)
            self.long += last - first >= run.settings.head.longest
            whole = (context.places[first][0], context.places[last][1])
            self.inexact += record["text"][slice(*whole)].strip() != answer["text"].strip()
        for first, last in found:
            row, _ = run.task.row(question, context, first, last, run.longest)
            self.pairs.append(Pair(self.seen, range(len(row)), range(1)))  # of lengths only
        self.seen += 1


def check_questions(settings: Settings, shown: Shown) -> dict[str, Any]:
    """Questions with their contexts and answers, as plain data."""
    corpus = build_corpus(settings.data)
    contexts: dict[str, set[int]] = {split: set() for split in corpus.splits}
    without: Counter[str] = Counter()

    def seen(split: str, record: Record) -> Record:
        contexts[split].add(hash(record["text"]))
        without[split] += not record["answers"]
        said = [answer["text"] for answer in record["answers"][:1]]
        return {"source": f"{record['question']}\t{record['text']}", "target": "".join(said)}

    counted = count(corpus, shown, seen)
    run: AnswerRun = prepare(settings, corpus)
    splits, cut = {}, {}
    for split in corpus.splits:
        census = counted[split]
        cut[split] = asked = asked_in(corpus, split, census.pairs, run, shown)
        facts = {"questions": census.pairs, "contexts": len(contexts[split])}
        facts |= {"without_answer": without[split], **odd(corpus, split, census, "questions")}
        if split != "train":
            facts["leaked_contexts"] = len(contexts[split] & contexts["train"])
        shares = {"windowed": asked.windowed, "long": asked.long, "inexact": asked.inexact}
        facts |= {name: number / max(asked.seen, 1) for name, number in shares.items()}
        facts |= {"one_text_in": asked.every}
        splits[split] = {**facts, "question": asked.question.told(), "text": asked.text.told()}
    found = {
        "data": corpus.describe(),
        "splits": splits,
        "batches": batched(settings, cut["train"]),
        "model": model_of(run),
    }
    return {**found, "warnings": list(on_questions(found, settings))}


def asked_in(corpus: Corpus, split: str, total: int, run: AnswerRun, shown: Shown) -> Asked:
    found = Asked(every=every(total))
    for some in chunks(shown(f"cutting {split}", total, corpus.read(split)), found.every):
        for record, question, context in run.task.cut(some):
            found.add(run, record, question, context)
    return found


def batched(settings: Settings, cut: Asked) -> dict[str, Any]:
    """An epoch as training would cut it."""
    train = settings.train
    batches = Batches(
        Stored(cut.pairs, settings.seed),
        tokens=train.tokens_per_batch,
        sentences=train.sentences_per_batch,
        seed=settings.seed,
    )
    groups = [[len(pair.source) for pair in group] for group in batches.of_epoch()]
    room = sum(len(group) * max(group) for group in groups)
    padding = 1 - sum(map(sum, groups)) / room
    return {"per_epoch": len(groups) * cut.every, "padding": padding}
