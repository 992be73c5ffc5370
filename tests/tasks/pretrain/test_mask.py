"""The masker by its statistics and its laws; pairs of sentences by where they come from."""

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


def drawn(seed):
    return torch.Generator().manual_seed(seed)


def within(count, of, share):
    """Three standard deviations of a binomial draw."""
    return abs(count - of * share) <= 3 * math.sqrt(of * share * (1 - share))


def texts(rows, length, seed):
    """[CLS] pieces [SEP] padding, and where words begin."""
    ids = torch.randint(len(SPECIALS), SIZE, (rows, length), generator=drawn(seed))
    ends = torch.randint(2, length, (rows, 1), generator=drawn(seed + 1))
    place = torch.arange(length)
    ids = torch.where(place < ends, ids, torch.where(place == ends, SEP, PAD))
    ids[:, 0] = CLS
    return ids, place <= ends, ids % 3 != 0  # two of three pieces begin a word


def hidden(ids, valid, begins=None, seed=0):
    free = maskable_positions(ids, valid, SPECIALS)
    ordinary = text_token_ids(SIZE, SPECIALS)
    return free, mask_tokens(
        ids, free, mask_id=MASK, text_ids=ordinary, generator=drawn(seed), word_starts=begins
    )


@pytest.mark.parametrize("whole", [False, True])
def test_shares_of_a_million(whole):
    """15 % chosen; of those 80 % hidden, 10 % replaced, 10 % as they were.

    The draws are fixed, for of free ones one in 400 would be outside. Where pieces of a word are
    chosen together, words are counted.
    """
    ids = torch.randint(len(SPECIALS), SIZE, (1000, 1000), generator=drawn(1))
    begins = ids % 3 != 0 if whole else None
    free, (read, chosen) = hidden(ids, torch.ones_like(ids, dtype=torch.bool), begins)
    counted = free if begins is None else free & begins
    assert within(int((counted & chosen).sum()), int(counted.sum()), 0.15)
    told = int(chosen.sum())
    assert within(int((read == MASK).sum()), told, 0.8)
    # one random id in 1000 is the original
    assert within(int((chosen & (read != MASK) & (read != ids)).sum()), told, 0.1 * 0.999)
    assert within(int((chosen & (read == ids)).sum()), told, 0.1 * 1.001)
    other = read[chosen & (read != MASK) & (read != ids)]
    assert set(other.tolist()) == set(range(len(SPECIALS), SIZE))  # all of text, no special


@settings(max_examples=30)
@given(st.integers(1, 20), st.integers(3, 30), st.integers(0, 10**6), st.booleans())
def test_laws(rows, length, seed, whole):
    ids, valid, begins = texts(rows, length, seed)
    free, (read, chosen) = hidden(ids, valid, begins if whole else None, seed)
    assert not (chosen & ~valid).any()
    for special in SPECIALS:
        assert not (chosen & (ids == special)).any()
    assert torch.equal(read[~chosen], ids[~chosen])
    if whole:  # a piece is chosen if, and only if, that before it in the word is
        inside = free[:, 1:] & free[:, :-1] & ~begins[:, 1:]
        assert torch.equal(chosen[:, 1:][inside], chosen[:, :-1][inside])
    _, again = hidden(ids, valid, begins if whole else None, seed)
    assert torch.equal(again.ids, read)


def test_a_special_piece_ends_a_word():
    """Text that was cut in the middle of a word begins with a piece that begins none."""
    ids = torch.tensor([[CLS, 7, SEP, 9, SEP]] * 200)
    begins = torch.tensor([[True, True, True, False, True]] * 200)
    _, (_, chosen) = hidden(ids, torch.ones_like(begins), begins)
    assert not torch.equal(chosen[:, 1], chosen[:, 3])


def test_each_time_others():
    ids, valid, _ = texts(20, 30, 5)
    free, generator = maskable_positions(ids, valid, SPECIALS), drawn(0)
    common = {"mask_id": MASK, "text_ids": text_token_ids(SIZE, SPECIALS), "generator": generator}
    one, other = (mask_tokens(ids, free, **common) for _ in range(2))
    assert not torch.equal(one.target_mask, other.target_mask)
    assert mask_tokens(ids, free, rate=0.9, **common).target_mask.sum() > 2 * one.target_mask.sum()


def test_ids_that_stand_for_text():
    assert text_token_ids(6, [0, 2, 5]).tolist() == [1, 3, 4]
    ids = torch.tensor([[CLS, 7, MASK, 8, SEP, PAD]])
    free = maskable_positions(ids, torch.tensor([[True] * 5 + [False]]), SPECIALS)
    assert free.tolist() == [[False, True, False, True, False, False]]
    with pytest.raises(ValueError, match="size must leave an id that is not special, and 2"):
        text_token_ids(2, [0, 1])


def documents(count, sentences, words):
    """An id tells where it is from: document, sentence, place."""
    return [
        [[10_000 * d + 100 * s + w for w in range(1, words + 1)] for s in range(sentences)]
        for d in range(count)
    ]


def test_half_of_the_pairs_follow():
    pairs = list(sentence_pairs(documents(100, 40, 4), 30, drawn(2)))
    assert len(pairs) > 500
    assert within(sum(pair.is_next for pair in pairs), len(pairs), 0.5)


def test_one_in_ten_is_short():
    """Filled to a length from 2 to 30, and 30 is one of them; ends of documents are rare."""
    texts = [[[d]] * 4000 for d in range(3)]
    sizes = [len(p.first) + len(p.second) for p in sentence_pairs(texts, 30, drawn(4))]
    assert within(sum(size < 30 for size in sizes), len(sizes), 0.1 * 28 / 29)
    assert min(sizes) < 8
    sizes = [
        len(p.first) + len(p.second) for p in sentence_pairs(texts, 30, drawn(4), short_share=0.0)
    ]
    assert sum(size < 30 for size in sizes) < len(sizes) / 50


@settings(max_examples=30)
@given(
    st.lists(st.lists(st.integers(0, 5), max_size=6), min_size=2, max_size=5),
    st.integers(2, 12),
    st.integers(0, 1000),
)
def test_where_pairs_come_from(shape, length, seed):
    """`shape` has the length of each sentence; both parts are runs of text, cut at their ends."""
    texts = [
        [[1000 * d + 10 * s + w for w in range(size)] for s, size in enumerate(sizes)]
        for d, sizes in enumerate(shape)
    ]
    flat = [[word for sentence in text for word in sentence] for text in texts]
    if sum(map(bool, flat)) < 2:
        with pytest.raises(ValueError, match="documents must be at least 2 that are not empty"):
            list(sentence_pairs(texts, length, drawn(seed)))
        return
    for first, second, follows in sentence_pairs(texts, length, drawn(seed)):
        assert 2 <= len(first) + len(second) <= length
        here, there = first[0] // 1000, second[0] // 1000
        assert (here == there) == follows
        for part in (first, second):
            text = flat[part[0] // 1000]
            start = text.index(part[0])
            assert part == text[start : start + len(part)]
        if follows:
            assert flat[here].index(first[-1]) < flat[here].index(second[0])


def test_no_sentence_is_lost_but_the_last():
    """Without truncation every sentence is in a first part, or follows one."""
    texts = documents(50, 10, 2)
    pairs = list(sentence_pairs(texts, 10_000, drawn(3), short_share=0.5))
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


def test_the_longer_is_cut_at_both_ends():
    first, second = truncate_randomly(list(range(20)), [50, 51], 8, drawn(0))
    assert second == [50, 51]
    assert len(first) == 6
    assert first == list(range(first[0], first[0] + 6))
    ends = [truncate_randomly(list(range(20)), [50, 51], 8, drawn(n))[0][0] for n in range(40)]
    assert 5 < sum(ends) / len(ends) < 9  # about half of the 14 from the front
    assert truncate_randomly([1], [2], 5, drawn(0)) == ([1], [2])


def test_joined():
    ids, segments = ids_and_segments(SentencePair([7, 8], [9], True), CLS, SEP)
    assert ids == [CLS, 7, 8, SEP, 9, SEP]
    assert segments == [0, 0, 0, 0, 1, 1]


def test_wrong_arguments(unchecked):
    ids = torch.ones(1, 2, dtype=torch.int64)
    with pytest.raises(ValueError, match="rate must be between 0 and 1, not 15"):
        mask_tokens(ids, ids > 0, mask_id=MASK, text_ids=ids[0], generator=drawn(0), rate=15)
    with pytest.raises(ValueError, match="length must be at least 2"):
        list(sentence_pairs(documents(2, 2, 2), 1, drawn(0)))
