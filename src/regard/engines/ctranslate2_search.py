"""Search by CTranslate2, where it gives the outputs of regard's own search.

    greedy    the same tokens
    beam      the same steps: it ends when `width` hypotheses are finished, and ranks them by ours

It differs at two places, which this module notices and leaves to regard's own search: an output at
its maximum length has no end token there, and it may contain PAD and START.
"""

import math
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from regard.config.decode import BeamConfig, DecodeConfig, GreedyConfig
from regard.decoding.penalties import LengthNormalization, length_penalty
from regard.decoding.stepper import Hypothesis
from regard.engines.ctranslate2_model import EngineObject
from regard.text.special import END, PAD, START

ROWS_PER_BATCH = 64  # hypotheses that a replica extends together
MIN_BEAM_TOKENS = 1000  # in a smaller vocabulary, PAD may take the place of a good hypothesis
NO_PENALTY = 1e-30  # ranks by log P; 0 would also change the rule that ends a search
# |Y|^(0.8 alpha) ranks outputs of about 20 tokens like ((5 + |Y|) / 6)^alpha
GNMT_EXPONENT = 0.8


class EngineSearch(NamedTuple):
    """A search that CTranslate2 can do: greedy if `width` is 1, else with beams."""

    width: int = 1
    n_best: int = 1
    alpha: float = 0.0
    normalization: LengthNormalization = "gnmt"

    @property
    def exponent(self) -> float:
        """Return the exponent of the length by which CTranslate2 ranks its hypotheses."""
        if not self.alpha:
            return NO_PENALTY
        return self.alpha * (GNMT_EXPONENT if self.normalization == "gnmt" else 1.0)


def engine_search(decode: DecodeConfig, vocabulary_size: int) -> EngineSearch | str:
    """Return the search that the settings describe, or why CTranslate2 cannot do it."""
    for name in ("min_length", "no_repeat_ngram"):
        if value := getattr(decode, name):
            return f"decode.{name} = {value}"
    match decode:
        case GreedyConfig():
            return EngineSearch()
        case BeamConfig() if decode.patience != 1:
            return f"decode.patience = {decode.patience}"
        case BeamConfig() if decode.coverage_penalty:
            return f"decode.coverage_penalty = {decode.coverage_penalty}"
        case BeamConfig() if decode.width > 1 and vocabulary_size < MIN_BEAM_TOKENS:
            return f"decode.width = {decode.width} with a vocabulary of {vocabulary_size} tokens"
        case BeamConfig():
            search = EngineSearch(
                decode.width, decode.n_best, decode.length_penalty, decode.length_normalization
            )
            if search.n_best > 1 and search.alpha and search.normalization == "gnmt":
                return f"decode.n_best = {decode.n_best} with the length normalization gnmt"
            return search
        case _:
            return f"decode.kind = {decode.kind!r}"


class CTranslate2Layout:
    """Opens a model for one text with all threads, or for several with one thread each.

    Calls with fewer than `min_texts` are left to regard's own search.
    """

    def __init__(
        self, model_class: str, folder: Path, *, int8: bool, threads: int, min_texts: int = 1
    ):
        self.model_class, self.folder, self.int8, self.threads = model_class, folder, int8, threads
        self.min_texts = min_texts
        self.models: dict[int, EngineObject] = {}

    def model(self, texts: int) -> EngineObject:
        """Return the model for this number of texts; it is loaded at its first use."""
        import ctranslate2

        replicas = self.threads if texts > 1 else 1
        if replicas not in self.models:
            self.models[replicas] = getattr(ctranslate2, self.model_class)(
                str(self.folder),
                compute_type="int8" if self.int8 else "float32",
                inter_threads=replicas,
                intra_threads=self.threads // replicas,
            )
        return self.models[replicas]

    def batch_size(self, texts: int, rows: int = 1) -> int:
        """Return the number of texts in a batch: every replica gets some."""
        share = math.ceil(texts / self.threads)
        return max(1, min(ROWS_PER_BATCH // rows, share))


class CTranslate2Translator:
    """A model that reads one text and writes another."""

    def __init__(
        self,
        layout: CTranslate2Layout,
        source: Sequence[str],
        target: Sequence[str],
        *,
        max_source: int,
        max_target: int,
    ):
        self.layout, self.source_tokens, self.target_tokens = layout, source, target
        self.target_ids = {token: token_id for token_id, token in enumerate(target)}
        self.max_source, self.max_target = max_source, max_target

    def search(
        self, sources: Sequence[Sequence[int]], max_lengths: Sequence[int], search: EngineSearch
    ) -> list[list[Hypothesis] | None]:
        """Return the hypotheses of each source, or None where regard's own search is needed.

        CTranslate2 writes nothing for an empty source, and does not know every position.
        """
        results: list[list[Hypothesis] | None] = [None] * len(sources)
        indices = [
            index
            for index, source in enumerate(sources)
            if 0 < len(source) < self.max_source and max_lengths[index] < self.max_target
        ]
        if len(indices) < self.layout.min_texts:
            return results
        translations = self.layout.model(len(indices)).translate_batch(
            [[self.source_tokens[token_id] for token_id in sources[index]] for index in indices],
            max_batch_size=self.layout.batch_size(len(indices), search.width),
            beam_size=search.width,
            num_hypotheses=search.width,
            length_penalty=search.exponent,
            max_input_length=0,
            min_decoding_length=0,
            max_decoding_length=1 + max(max_lengths[index] for index in indices),
            return_end_token=True,
            return_scores=True,
        )
        for index, translation in zip(indices, translations, strict=True):
            results[index] = self.hypotheses(translation, max_lengths[index], search)
        return results

    def hypotheses(
        self, translation: EngineObject, max_length: int, search: EngineSearch
    ) -> list[Hypothesis] | None:
        """Return the n best hypotheses; None if one is too long, or has ids that no output has."""
        ranked = list[Hypothesis]()
        for tokens, score in zip(translation.hypotheses, translation.scores, strict=True):
            ids, length = [self.target_ids[token] for token in tokens], len(tokens)
            longest = max_length + 1 if search.width == 1 else max_length
            if length > longest or ids.pop() != END or PAD in ids or START in ids:
                return None
            log_prob = score * length**search.exponent
            penalty = length_penalty(length, search.alpha, search.normalization)
            ranked.append(Hypothesis(ids, log_prob / penalty, log_prob))
        return sorted(ranked, key=lambda output: -output.score)[: search.n_best]


class CTranslate2Generator:
    """A language model, whose greedy search continues prompts."""

    def __init__(
        self, layout: CTranslate2Layout, tokens: Sequence[str], *, end: int, max_positions: int
    ):
        self.layout, self.tokens, self.end = layout, tokens, end
        self.max_positions = max_positions

    def search(self, prompts: Sequence[Sequence[int]], max_length: int) -> list[Hypothesis | None]:
        """Return the likeliest continuation of each prompt.

        It is None where it does not fit beside the prompt: regard's own search forgets the
        beginning. Prompts of equal length are read together, because CTranslate2 reads no padding.
        """
        results: list[Hypothesis | None] = [None] * len(prompts)
        indices = [
            index
            for index, prompt in enumerate(prompts)
            if len(prompt) + max_length < self.max_positions
        ]
        if len(indices) < self.layout.min_texts:
            return results
        model, pending = self.layout.model(len(indices)), list[tuple[int, EngineObject]]()
        ordered = sorted(indices, key=lambda index: len(prompts[index]))
        for _, group in groupby(ordered, key=lambda index: len(prompts[index])):
            rows = list(group)
            batch = model.generate_batch(
                [self.to_tokens(prompts[index]) for index in rows],
                max_batch_size=self.layout.batch_size(len(rows)),
                asynchronous=True,
                end_token=self.tokens[self.end],
                length_penalty=NO_PENALTY,
                max_length=max_length + 1,
                include_prompt_in_result=False,
                return_end_token=True,
                return_scores=True,
            )
            pending += zip(rows, batch, strict=True)
        for index, answer in pending:
            result = answer.result()
            *ids, last = result.sequences_ids[0]
            log_prob = result.scores[0] if last == self.end else math.nan
            results[index] = Hypothesis(ids, log_prob, log_prob)
        self.score_cut_outputs(model, prompts, results)
        return results

    def score_cut_outputs(
        self,
        model: EngineObject,
        prompts: Sequence[Sequence[int]],
        results: list[Hypothesis | None],
    ) -> None:
        """Compute the log-probability of outputs of maximum length: an end token follows them."""
        cut = {
            index: result.ids
            for index, result in enumerate(results)
            if result is not None and math.isnan(result.log_prob)
        }
        if not cut:
            return
        scores = model.score_batch(
            [self.to_tokens([*prompts[index], *ids, self.end]) for index, ids in cut.items()],
            max_batch_size=self.layout.batch_size(len(cut)),
        )
        for (index, ids), score in zip(cut.items(), scores, strict=True):
            log_prob = sum(score.log_probs[len(prompts[index]) - 1 :])
            results[index] = Hypothesis(ids, log_prob, log_prob)

    def to_tokens(self, ids: Sequence[int]) -> list[str]:
        return [self.tokens[token_id] for token_id in ids]
