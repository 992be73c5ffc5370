"""Data doctor for questions with their contexts."""

from collections import Counter
from dataclasses import dataclass, field

from regard.batching.batches import Batches, InMemoryExamples
from regard.batching.example import ExampleSize
from regard.config.settings import Settings
from regard.data.build import build_corpus
from regard.data.corpus import Corpus, Record
from regard.files import JsonObject
from regard.tasks.answer.inputs import AnyTokenizedText, token_span
from regard.tasks.building import UntrainedRun, build_untrained_run
from regard.tasks.doctor.counts import (
    Progress,
    TokenStatistics,
    count_records,
    sampled_chunks,
    sampling_stride,
)
from regard.tasks.doctor.texts import model_summary, text_anomalies, unknown_id
from regard.tasks.doctor.warnings import question_warnings


@dataclass
class QuestionStatistics:
    """Counts of the questions of a split, in tokens."""

    stride: int = 1
    question_count: int = 0
    windowed: int = 0  # questions whose context is read in several windows
    long_answers: int = 0  # questions whose answer is longer than head.max_answer_tokens
    inexact_answers: int = 0  # questions whose answer starts or ends inside a token
    question: TokenStatistics = field(default_factory=TokenStatistics)
    text: TokenStatistics = field(default_factory=TokenStatistics)
    examples: list[ExampleSize] = field(default_factory=list)

    def add(
        self,
        run: UntrainedRun,
        record: Record,
        question: AnyTokenizedText,
        context: AnyTokenizedText,
    ) -> None:
        layout, unknown = run.task.layout, unknown_id(run.vocabularies["text"])
        for side, part in ((self.question, question), (self.text, context)):
            side.add(layout.token_ids(part.tokens), unknown)
        windows = list(run.task.windows(question, context))
        self.windowed += len(windows) > 1
        for answer in record["answers"][:1]:
            end = answer["start"] + len(answer["text"])
            first, last = token_span(context.offsets, answer["start"], end) or (0, -1)
            self.long_answers += last - first >= run.settings.head.max_answer_tokens
            character_span = (context.offsets[first][0], context.offsets[last][1])
            self.inexact_answers += (
                record["text"][slice(*character_span)].strip() != answer["text"].strip()
            )
        for first, last in windows:
            row, _ = run.task.row(question, context, first, last)
            self.examples.append(ExampleSize(self.question_count, (len(row), 1)))
        self.question_count += 1


def check_questions(settings: Settings, progress: Progress) -> JsonObject:
    """Return counts, lengths and warnings of questions, contexts and answers as plain data."""
    corpus = build_corpus(settings.data)
    contexts: dict[str, set[int]] = {split: set() for split in corpus.splits}
    unanswered: Counter[str] = Counter()

    def to_pair(split: str, record: Record) -> Record:
        contexts[split].add(hash(record["text"]))
        unanswered[split] += not record["answers"]
        answers = [answer["text"] for answer in record["answers"][:1]]
        return {"source": f"{record['question']}\t{record['text']}", "target": "".join(answers)}

    statistics_by_split = count_records(corpus, progress, to_pair)
    run: UntrainedRun = build_untrained_run(settings, corpus)
    splits, questions_by_split = {}, {}
    for split in corpus.splits:
        split_statistics = statistics_by_split[split]
        questions_by_split[split] = questions = question_statistics(
            corpus, split, split_statistics.pairs, run, progress
        )
        split_report = {"questions": split_statistics.pairs, "contexts": len(contexts[split])}
        split_report |= {
            "without_answer": unanswered[split],
            **text_anomalies(corpus, split, split_statistics, "questions"),
        }
        if split != "train":
            split_report["leaked_contexts"] = len(contexts[split] & contexts["train"])
        shares = {
            "windowed": questions.windowed,
            "long": questions.long_answers,
            "inexact": questions.inexact_answers,
        }
        split_report |= {
            name: amount / max(questions.question_count, 1) for name, amount in shares.items()
        }
        split_report |= {"one_text_in": questions.stride}
        splits[split] = {
            **split_report,
            "question": questions.question.as_dict(),
            "text": questions.text.as_dict(),
        }
    report = {
        "data": corpus.describe(),
        "splits": splits,
        "batches": batch_statistics(settings, questions_by_split["train"]),
        "model": model_summary(run),
    }
    return {**report, "warnings": list(question_warnings(report, settings))}


def question_statistics(
    corpus: Corpus, split: str, total: int, run: UntrainedRun, progress: Progress
) -> QuestionStatistics:
    statistics = QuestionStatistics(stride=sampling_stride(total))
    for chunk in sampled_chunks(
        progress(f"cutting {split}", total, corpus.read(split)), statistics.stride
    ):
        for record, question, context in run.task.tokenize(chunk):
            statistics.add(run, record, question, context)
    return statistics


def batch_statistics(settings: Settings, statistics: QuestionStatistics) -> JsonObject:
    """Return the number of batches of an epoch and the share of padding."""
    train = settings.train
    batches = Batches(
        InMemoryExamples(statistics.examples, settings.seed),
        collate=list,
        tokens_per_batch=train.tokens_per_batch,
        examples_per_batch=train.examples_per_batch,
        seed=settings.seed,
    )
    groups = [[example.lengths[0] for example in group] for group in batches.epoch_batches()]
    padded_tokens = sum(len(group) * max(group) for group in groups)
    padding = 1 - sum(map(sum, groups)) / padded_tokens
    return {"per_epoch": len(groups) * statistics.stride, "padding": padding}
