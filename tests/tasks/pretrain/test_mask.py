"""Masking: statistics and laws. Sentence pairs: where their parts come from."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.tasks.pretrain.mask import (
    SentencePair,
    ids_and_segments,
    mask_tokens,
    maskable_positions,
    sentence_pairs,
    text_token_ids,
    truncate_randomly,
)

PAD, CLS, SEP, UNKNOWN, MASK = 0, 1, 2, 3, 4
SPECIALS = (PAD, CLS, SEP, UNKNOWN, MASK)
SIZE = 1005


def generator_of(seed):
    return torch.Generator().manual_seed(seed)


def is_close(count, total, share):
    """Return whether a binomial count is within three standard deviations of its mean."""
    return abs(count - total * share) <= 3 * math.sqrt(total * share * (1 - share))


def random_texts(rows, length, seed):
    """Return ids of [CLS] pieces [SEP] padding, valid positions, and which pieces begin a word."""
    ids = torch.randint(len(SPECIALS), SIZE, (rows, length), generator=generator_of(seed))
    ends = torch.randint(2, length, (rows, 1), generator=generator_of(seed + 1))
    position = torch.arange(length)
    ids = torch.where(position < ends, ids, torch.where(position == ends, SEP, PAD))
    ids[:, 0] = CLS
    return ids, position <= ends, ids % 3 != 0  # two of three pieces begin a word


def masked(ids, valid, word_starts=None, seed=0):
    """Return the maskable positions and the masked tokens."""
    maskable = maskable_positions(ids, valid, SPECIALS)
    text_ids = text_token_ids(SIZE, SPECIALS)
    return maskable, mask_tokens(
        ids,
        maskable,
        mask_id=MASK,
        text_ids=text_ids,
        generator=generator_of(seed),
        word_starts=word_starts,
    )


@pytest.mark.parametrize("whole_words", [False, True])
def test_shares_of_a_million_tokens(whole_words):
    """15 % are targets; of these 80 % are masked, 10 % replaced and 10 % unchanged.

    The seed is fixed: of random seeds, one in 400 would be outside. With whole words, words are
    counted.
    """
    ids = torch.randint(len(SPECIALS), SIZE, (1000, 1000), generator=generator_of(1))
    word_starts = ids % 3 != 0 if whole_words else None
    valid = torch.ones_like(ids, dtype=torch.bool)
    maskable, (inputs, is_target) = masked(ids, valid, word_starts)
    counted = maskable if word_starts is None else maskable & word_starts
    assert is_close(int((counted & is_target).sum()), int(counted.sum()), 0.15)
    targets = int(is_target.sum())
    assert is_close(int((inputs == MASK).sum()), targets, 0.8)
    # one random id in 1000 is the original
    assert is_close(
        int((is_target & (inputs != MASK) & (inputs != ids)).sum()), targets, 0.1 * 0.999
    )
    assert is_close(int((is_target & (inputs == ids)).sum()), targets, 0.1 * 1.001)
    replacements = inputs[is_target & (inputs != MASK) & (inputs != ids)]
    assert set(replacements.tolist()) == set(range(len(SPECIALS), SIZE))  # all but special ids


@settings(max_examples=30)
@given(st.integers(1, 20), st.integers(3, 30), st.integers(0, 10**6), st.booleans())
def test_laws_of_masking(rows, length, seed, whole_words):
    ids, valid, word_starts = random_texts(rows, length, seed)
    starts = word_starts if whole_words else None
    maskable, (inputs, is_target) = masked(ids, valid, starts, seed)
    assert not (is_target & ~valid).any()
    for special in SPECIALS:
        assert not (is_target & (ids == special)).any()
    assert torch.equal(inputs[~is_target], ids[~is_target])
    if whole_words:  # a piece is a target if, and only if, the piece before it in the word is
        inside = maskable[:, 1:] & maskable[:, :-1] & ~word_starts[:, 1:]
        assert torch.equal(is_target[:, 1:][inside], is_target[:, :-1][inside])
    _, repeated = masked(ids, valid, starts, seed)
    assert torch.equal(repeated.ids, inputs)


def test_a_special_token_ends_a_word():
    """A span that was cut inside a word begins with a piece that does not begin a word."""
    ids = torch.tensor([[CLS, 7, SEP, 9, SEP]] * 200)
    word_starts = torch.tensor([[True, True, True, False, True]] * 200)
    _, (_, is_target) = masked(ids, torch.ones_like(word_starts), word_starts)
    assert not torch.equal(is_target[:, 1], is_target[:, 3])


def test_each_call_masks_other_tokens():
    ids, valid, _ = random_texts(20, 30, 5)
    maskable, generator = maskable_positions(ids, valid, SPECIALS), generator_of(0)
    options = {"mask_id": MASK, "text_ids": text_token_ids(SIZE, SPECIALS), "generator": generator}
    first, second = (mask_tokens(ids, maskable, **options).target_mask for _ in range(2))
    assert not torch.equal(first, second)
    assert mask_tokens(ids, maskable, rate=0.9, **options).target_mask.sum() > 2 * first.sum()


def test_special_tokens_and_padding_are_not_maskable():
    assert text_token_ids(6, [0, 2, 5]).tolist() == [1, 3, 4]
    ids = torch.tensor([[CLS, 7, MASK, 8, SEP, PAD]])
    maskable = maskable_positions(ids, torch.tensor([[True] * 5 + [False]]), SPECIALS)
    assert maskable.tolist() == [[False, True, False, True, False, False]]
    with pytest.raises(ValueError, match="size must leave an id that is not special, and 2"):
        text_token_ids(2, [0, 1])


def documents(count, sentences, words):
    """Return documents whose ids encode document, sentence and position."""
    return [
        [[10_000 * d + 100 * s + w for w in range(1, words + 1)] for s in range(sentences)]
        for d in range(count)
    ]


def test_half_of_the_second_parts_follow_the_first():
    pairs = list(sentence_pairs(documents(100, 40, 4), 30, generator_of(2)))
    assert len(pairs) > 500
    assert is_close(sum(pair.is_next for pair in pairs), len(pairs), 0.5)


def test_one_pair_in_ten_is_short():
    """Short pairs have 2 to 30 ids, so that one in 29 is full; ends of documents are rare."""
    texts = [[[d]] * 4000 for d in range(3)]
    sizes = [len(p.first) + len(p.second) for p in sentence_pairs(texts, 30, generator_of(4))]
    assert is_close(sum(size < 30 for size in sizes), len(sizes), 0.1 * 28 / 29)
    assert min(sizes) < 8
    sizes = [
        len(p.first) + len(p.second)
        for p in sentence_pairs(texts, 30, generator_of(4), short_share=0.0)
    ]
    assert sum(size < 30 for size in sizes) < len(sizes) / 50


@settings(max_examples=30)
@given(
    st.lists(st.lists(st.integers(0, 5), max_size=6), min_size=2, max_size=5),
    st.integers(2, 12),
    st.integers(0, 1000),
)
def test_parts_of_pairs_are_spans_of_documents(shape, length, seed):
    """`shape` has the length of each sentence; a part is a span of text, cut at its ends."""
    texts = [
        [[1000 * d + 10 * s + w for w in range(size)] for s, size in enumerate(sizes)]
        for d, sizes in enumerate(shape)
    ]
    flat = [[word for sentence in text for word in sentence] for text in texts]
    if sum(map(bool, flat)) < 2:
        with pytest.raises(ValueError, match="documents must be at least 2 that are not empty"):
            list(sentence_pairs(texts, length, generator_of(seed)))
        return
    for first, second, is_next in sentence_pairs(texts, length, generator_of(seed)):
        assert 2 <= len(first) + len(second) <= length
        first_document, second_document = first[0] // 1000, second[0] // 1000
        assert (first_document == second_document) == is_next
        for part in (first, second):
            text = flat[part[0] // 1000]
            start = text.index(part[0])
            assert part == text[start : start + len(part)]
        if is_next:
            text = flat[first_document]
            assert text.index(first[-1]) < text.index(second[0])


def test_every_sentence_but_the_last_is_used():
    """Without truncation, every sentence is in a first part or follows one."""
    texts = documents(50, 10, 2)
    pairs = list(sentence_pairs(texts, 10_000, generator_of(3), short_share=0.5))
    for number in range(50):
        used = [
            word
            for pair in pairs
            for part in ([pair.first, pair.second] if pair.is_next else [pair.first])
            for word in part
            if word // 10_000 == number
        ]
        flat = [word for sentence in texts[number] for word in sentence]
        assert used == flat[: len(used)]
        assert len(used) >= len(flat) - 2


def test_the_longer_part_is_cut_at_both_ends():
    first, second = truncate_randomly(list(range(20)), [50, 51], 8, generator_of(0))
    assert second == [50, 51]
    assert len(first) == 6
    assert first == list(range(first[0], first[0] + 6))
    ends = [
        truncate_randomly(list(range(20)), [50, 51], 8, generator_of(n))[0][0] for n in range(40)
    ]
    assert 5 < sum(ends) / len(ends) < 9  # about half of the 14 from the front
    assert truncate_randomly([1], [2], 5, generator_of(0)) == ([1], [2])


def test_ids_and_segments_of_a_pair():
    ids, segments = ids_and_segments(SentencePair([7, 8], [9], True), CLS, SEP)
    assert ids == [CLS, 7, 8, SEP, 9, SEP]
    assert segments == [0, 0, 0, 0, 1, 1]


def test_wrong_arguments_raise_an_error(unchecked):
    ids = torch.ones(1, 2, dtype=torch.int64)
    with pytest.raises(ValueError, match="rate must be between 0 and 1, not 15"):
        mask_tokens(ids, ids > 0, mask_id=MASK, text_ids=ids[0], generator=generator_of(0), rate=15)
    with pytest.raises(ValueError, match="length must be at least 2"):
        list(sentence_pairs(documents(2, 2, 2), 1, generator_of(0)))
