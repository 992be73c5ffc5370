"""Tests of dates: unambiguous texts, disjoint splits, reproducible records."""

import os
import re
import subprocess
import sys
from datetime import date
from itertools import islice

import pytest

from regard.data.synthetic.dates import (
    FIRST_DAY,
    LANGUAGES,
    LAST_DAY,
    Dates,
    date_styles,
    split_days,
)

DAY = date(1994, 5, 3)


def written_texts(language, day=DAY):
    return {style.write(day) for style in date_styles(language)}


@pytest.mark.parametrize(
    ("language", "texts"),
    [
        ("de", {"Dienstag, 3. Mai 1994", "3. Mai 1994", "03.05.1994", "03.05.94"}),
        ("en", {"May 3rd, 1994", "Tuesday, May 3, 1994", "the 3rd of May 1994", "3 May 1994"}),
        ("fr", {"mardi 3 mai 1994", "3 mai 1994"}),
        ("es", {"martes, 3 de mayo de 1994"}),
        ("hu", {"1994. május 3.", "1994. 05. 03."}),
        ("ja", {"1994年5月3日", "1994年5月3日火曜日", "1994/05/03"}),
        ("ru", {"вторник, 3 мая 1994 г.", "03.05.1994"}),  # noqa: RUF001
    ],
)
def test_known_texts(language, texts):
    assert texts <= written_texts(language)


def test_two_digit_years():
    short = {
        style.write(DAY, two_digits=True) for style in date_styles("en") if style.can_shorten_year
    }
    assert {"May 3rd, 94", "3 May 94"} <= short
    assert not any(style.can_shorten_year for style in date_styles("hu"))
    assert not any(style.can_shorten_year for style in date_styles("ja"))
    texts_of_2004 = [style.write(date(2004, 2, 1), two_digits=True) for style in date_styles("nl")]
    assert "1 feb 04" in texts_of_2004


def test_ordinals():
    style = next(s for s in date_styles("en") if s.template == "{th} {MMMM} {y}")
    endings = {n: style.write(date(1999, 1, n)).split()[0] for n in range(1, 32)}
    assert [endings[n] for n in (1, 2, 3, 4, 11, 12, 13, 21, 22, 23, 30, 31)] == [
        *("1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "22nd", "23rd"),
        *("30th", "31st"),
    ]


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_has_several_styles(language):
    assert len(date_styles(language)) >= 3
    assert len(written_texts(language)) >= 3
    assert any(style.can_shorten_year for style in date_styles(language)) or language in (
        "hu",
        "ja",
    )
    for text in written_texts(language):
        assert "{" not in text
        assert text == text.strip()
        assert "\u00a0" not in text
        assert not re.search(r"\d[/-]\d{1,2}[/-]\d", re.sub(r"1994[/-]", "", text))


def test_month_names_are_unambiguous_across_languages():
    """Otherwise "3 lip 1994" could be two dates."""
    months_by_name: dict[str, set[int]] = {}
    for language in LANGUAGES:
        for style in date_styles(language):
            names_in_template = [
                names for field, names in style.months.items() if f"{{{field}}}" in style.template
            ]
            for names in names_in_template:
                for month, name in names.items():
                    for form in (name, name.lower(), name.upper()):
                        months_by_name.setdefault(form, set()).add(month)
    assert {name: months for name, months in months_by_name.items() if len(months) > 1} == {}
    assert months_by_name["MAI"] == {5}


def test_texts_are_unambiguous():
    """Write the most similar days in all styles; no text belongs to two dates."""
    days_by_text: dict[str, set[date]] = {}
    similar_days = [
        date(year, month, day)
        for year in (1950, 2001, 2010, 2012)
        for month in (1, 2, 3, 10, 12)  # month names are tested above
        for day in (1, 2, 10, 12, 20)
    ]
    for language in LANGUAGES:
        for style in date_styles(language):
            year_forms = {False, style.can_shorten_year}
            for day in similar_days:
                for short in year_forms:
                    text = style.write(day, two_digits=short)
                    for form in (text, text.lower(), text.upper()):
                        days_by_text.setdefault(form, set()).add(day)
    assert len(days_by_text) > 5_000
    assert {text: days for text, days in days_by_text.items() if len(days) > 1} == {}


def test_no_date_is_in_two_splits():
    days_by_split = {split: set(split_days(split)) for split in Dates.splits}
    assert sum(map(len, days_by_split.values())) == (LAST_DAY - FIRST_DAY).days + 1 == 36_525
    assert len(set.union(*days_by_split.values())) == 36_525
    assert len(days_by_split["dev"]) > 3000
    assert len(days_by_split["test"]) > 3000
    for seed in (0, 1):
        corpus = Dates(300, seed=seed, held_out=300)
        for split, days in days_by_split.items():
            for record in corpus.read(split):
                assert date.fromisoformat(record["target"]) in days


def test_train_covers_every_month_and_year():
    train = split_days("train")
    assert {day.year for day in train} == set(range(1950, 2050))
    assert {(day.month, day.day) for day in train} >= {
        (month, day) for month in range(1, 13) for day in range(1, 29)
    }


def test_the_same_seed_gives_the_same_dates():
    command = (
        "from regard.data.synthetic.dates import Dates; from itertools import islice;"
        "print(list(islice(Dates(50, seed=7).read('train'), 50)))"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", command],
            env={**os.environ, "PYTHONHASHSEED": str(seed), "PYTHONIOENCODING": "utf-8"},
            capture_output=True,
            encoding="utf-8",
            check=True,
        ).stdout.strip()
        for seed in (1, 2)
    }
    assert outputs == {str(list(Dates(50, seed=7).read("train")))}
    assert list(Dates(50, seed=8).read("train")) != list(Dates(50, seed=7).read("train"))


def test_a_pair_depends_on_its_index_alone():
    corpus = Dates(100, seed=3)
    assert corpus.example("train", 60) == next(islice(corpus.read("train"), 60, None))
    larger = Dates(200, seed=3)
    assert list(islice(larger.read("train"), 100)) == list(corpus.read("train"))


def test_sizes_and_variety():
    corpus = Dates(2000, held_out=10)
    records = list(corpus.read("train"))
    assert len(records) == 2000
    assert len(list(corpus.read("dev"))) == len(list(corpus.read("test"))) == 10
    texts = [record["source"] for record in records]
    assert len(set(texts)) > 1900
    assert 100 < sum(text.isupper() for text in texts) < 900  # digits alone are neither
    assert any(re.search(r"\d(st|nd|rd|th)\b", text) for text in texts)
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\d", record["target"]) for record in records)
    assert max(map(len, texts)) < 50


def test_only_the_given_languages():
    texts = [record["source"] for record in Dates(300, languages=["ja"]).read("train")]
    assert all(re.match(r"(19|20)\d\d[年/]", text) for text in texts)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": 0}, "size must be at least 1, not 0"),
        ({"held_out": 0}, "held_out must be at least 1"),
        ({"languages": []}, "languages are empty"),
        ({"languages": ["en", "xx"]}, "language must be one of en, .* not 'xx'"),
    ],
)
def test_bad_settings(options, message):
    with pytest.raises(ValueError, match=message):
        Dates(**{"size": 5, **options})
    with pytest.raises(ValueError, match="not 'tset'; did you mean 'test'"):
        list(Dates(5).read("tset"))


def test_description():
    assert "CLDR" in Dates().describe()
    assert "\n" not in Dates().describe()
