"""Our tokens and their places are those of Lance's indexes with the same parameters.

Texts are indexed as they are. Beside that our tokens are indexed, as words that Lance changes no
more: if both indexes have the same files, they have the same tokens at the same places.
"""

import random
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lance.file import LanceFileReader

from omnigraph.choices import Analyzer
from omnigraph.search.analysis import Token, analyse, analyse_column, index_parameters
from omnigraph.search.stop_words import stop_words

ROOT = Path(__file__).parents[3]

UNCHANGED = {
    "base_tokenizer": "whitespace",
    "language": "English",
    "max_token_length": None,
    "lower_case": False,
    "stem": False,
    # A stop word stands for what is left out.
    "remove_stop_words": True,
    "ascii_folding": False,
}
GAP = "the"
SPLITTING = [Analyzer.ENGLISH, Analyzer.SIMPLE, Analyzer.WHITESPACE]
AT_THE_GATE = {Analyzer.ENGLISH, Analyzer.GERMAN, Analyzer.RUSSIAN}
"""A language with few endings, one with long words, and one with letters of its own."""

LANGUAGES = [
    pytest.param(analyzer, marks=() if analyzer in AT_THE_GATE else pytest.mark.soak)
    for analyzer in Analyzer
    if analyzer.is_language
]

_SUFFIXES = (
    "s es ed ing ly ness ful ment ational tional enci anci izer abli alli entli eli ousli ization"
    " ation ator alism iveness fulness ousness aliti iviti biliti logi icate ative alize iciti ical"
    " e al ance ence er ic able ible ant ement ent ism ate iti ous ive ize ion y ies ied ingly edly"
)
SUFFIXES = _SUFFIXES.split()


def index_files(
    folder: Path, texts: Sequence[str], parameters: Mapping[str, Any]
) -> list[pa.Table]:
    """The documents, tokens and postings of an index of the texts."""
    rows = pa.table({"text": pa.array(texts, pa.string())})
    dataset = lance.write_dataset(rows, str(folder), mode="overwrite")
    dataset.create_scalar_index(
        "text", "INVERTED", replace=True, with_position=True, num_workers=1, **parameters
    )
    [index] = dataset.describe_indices()
    [segment] = index.segments
    files = folder / "_indices" / str(segment.uuid)
    names = sorted(path.name for path in files.glob("part_*.lance"))
    return [LanceFileReader(str(files / name)).read_all().to_table() for name in names]


def rewritten(tokens: Sequence[Token]) -> str:
    """A text that has these tokens at these places, for an index that changes nothing."""
    words = [GAP] * (tokens[-1].place + 1) if tokens else []
    for token in tokens:
        words[token.place] = token.text
    return " ".join(words)


def can_be_rewritten(tokens: Sequence[Token]) -> bool:
    english = stop_words(Analyzer.ENGLISH)
    return not any(token.text in english or re.search(r"^$|\s", token.text) for token in tokens)


def assert_same_tokens(folder: Path, analyzer: Analyzer, texts: Sequence[str]) -> None:
    # An index has at least one word, whatever the texts.
    pairs = [(text, analyse(analyzer, text)) for text in [*texts, "word"]]
    pairs = [(text, tokens) for text, tokens in pairs if can_be_rewritten(tokens)]
    kept = [text for text, _ in pairs]
    ours = [rewritten(tokens) for _, tokens in pairs]
    theirs = index_files(folder / "theirs", kept, index_parameters(analyzer))
    assert theirs == index_files(folder / "ours", ours, UNCHANGED)


def test_two_indexes_differ_if_a_token_differs_or_its_place(tmp_path):
    theirs = index_files(tmp_path / "a", ["one the two", "word"], UNCHANGED)
    assert theirs == index_files(tmp_path / "b", ["one the two", "word"], UNCHANGED)
    assert theirs != index_files(tmp_path / "b", ["one two", "word"], UNCHANGED)
    assert theirs != index_files(tmp_path / "b", ["one the too", "word"], UNCHANGED)


def characters_in_words(codes: Sequence[int]) -> list[str]:
    characters = [chr(code) for code in codes if not 0xD800 <= code <= 0xDFFF]
    return [
        " ".join(f"q{character}w" for character in characters[start : start + 64])
        for start in range(0, len(characters), 64)
    ]


@pytest.mark.parametrize("analyzer", SPLITTING)
def test_a_character_parts_words_or_is_of_one_as_in_an_index(tmp_path, analyzer):
    # Beyond these planes are Chinese characters, and what is not assigned.
    codes = [*range(1, 0x20000), *range(0x20000, 0x110000, 97)]
    step = 1 if analyzer is Analyzer.ENGLISH else 5
    assert_same_tokens(tmp_path, analyzer, characters_in_words(codes[::step]))


@pytest.mark.soak
@pytest.mark.parametrize("analyzer", SPLITTING)
def test_every_character_parts_words_or_is_of_one_as_in_an_index(tmp_path, analyzer):
    assert_same_tokens(tmp_path, analyzer, characters_in_words(range(1, 0x110000)))


def test_stems_and_stop_words_are_those_of_an_index(tmp_path):
    pages = " ".join(path.read_text() for path in sorted((ROOT / "docs").rglob("*.md")))
    words = sorted(set(re.findall("[a-z]+", pages.lower())))
    draw = random.Random(17)
    made = [draw.choice(words) + draw.choice(SUFFIXES) for _ in range(20_000)]
    texts = [f"x{number} {word} {word.upper()}y" for number, word in enumerate([*words, *made])]
    assert_same_tokens(tmp_path, Analyzer.ENGLISH, texts)


def words_like(language: Analyzer, count: int) -> list[str]:
    """The stop words of a language, and words of its letters and of its endings."""
    draw = random.Random(17)
    own = sorted(stop_words(language))
    letters = sorted({letter for word in own for letter in word})
    made = []
    for _ in range(count):
        first, last = draw.choice(own), draw.choice(own)
        some = "".join(draw.choices(letters, k=draw.randint(0, 4)))
        made.append(f"{first[: draw.randint(0, 5)]}{some}{last[-draw.randint(1, 9) :]}")
    return [*own, *made]


def compare_language(folder: Path, language: Analyzer, count: int) -> None:
    words = words_like(language, count)
    texts = [f"x{number} {word} {word.upper()}" for number, word in enumerate(words)]
    assert_same_tokens(folder, language, texts)


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_language_has_the_stems_and_stop_words_of_an_index(tmp_path, language):
    compare_language(tmp_path, language, 300)


@pytest.mark.soak
@pytest.mark.parametrize("language", LANGUAGES)
def test_each_language_has_the_stems_of_an_index_for_many_words(tmp_path, language):
    compare_language(tmp_path, language, 30_000)


def test_the_words_of_a_language_tell_it_from_others(tmp_path):
    """The comparison finds stems or stop words of another language."""
    texts = words_like(Analyzer.SWEDISH, 300)
    pairs = [(text, analyse(Analyzer.NORWEGIAN, text)) for text in texts]
    pairs = [(text, tokens) for text, tokens in pairs if can_be_rewritten(tokens)]
    parameters = index_parameters(Analyzer.SWEDISH)
    theirs = index_files(tmp_path / "theirs", [text for text, _ in pairs], parameters)
    ours = [rewritten(tokens) for _, tokens in pairs]
    assert theirs != index_files(tmp_path / "ours", ours, UNCHANGED)


@pytest.mark.parametrize("analyzer", SPLITTING)
def test_a_word_is_left_out_by_its_bytes(tmp_path, analyzer):
    texts = [letter * count for letter in "xé世İK" for count in range(8, 45)]
    assert_same_tokens(tmp_path, analyzer, texts)


@given(texts=st.lists(st.text(max_size=40), max_size=60), analyzer=st.sampled_from(SPLITTING))
@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_any_texts_have_the_tokens_of_an_index(tmp_path, texts, analyzer):
    assert_same_tokens(tmp_path, analyzer, texts)


def test_a_raw_text_is_one_token_as_it_is(tmp_path):
    texts = ["Big Words", "", "  ", "y" * 100, "İ ﬁ"]
    files = index_files(tmp_path / "theirs", texts, index_parameters(Analyzer.RAW))
    assert files[0]["_num_tokens"].to_pylist() == [1] * len(texts)
    plain = lance.dataset(str(tmp_path / "theirs"))
    for text in texts[3:]:
        query = lance.query.PhraseQuery(text, "text")
        assert plain.to_table(full_text_query=query)["text"].to_pylist() == [text]
    assert [analyse(Analyzer.RAW, text) for text in texts] == [(Token(text, 0),) for text in texts]


@given(
    texts=st.lists(st.none() | st.text(alphabet="aAé世 -.\n1ßsﬁ", max_size=30), max_size=30),
    analyzer=st.sampled_from(Analyzer),
)
@settings(max_examples=200, deadline=None)
def test_a_column_has_the_tokens_of_its_texts(texts, analyzer):
    column = analyse_column(analyzer, pa.array(texts, pa.string()))
    terms = list(column.terms)
    for row, text in enumerate(texts):
        part = slice(column.offsets[row], column.offsets[row + 1])
        tokens = zip(column.numbers[part], column.places[part], strict=True)
        found = [Token(terms[number], int(place)) for number, place in tokens]
        assert found == ([] if text is None else list(analyse(analyzer, text)))
        assert column.present[row] == (text is not None)
