from __future__ import annotations

import pytest
from lark import Token

from omnigraph.lang.diagnostics import Diagnostic
from omnigraph.lang.grammar import NESTING_MAX, TEXT_LENGTH_MAX, Grammar, lexemes, unescape
from omnigraph.lang.source import Source, Span

GRAMMAR = Grammar("omnigraph.schema", "S000", {"TYPE": "a type name"}, {"struct": "try node"})


def parse(text, start=0):
    return GRAMMAR.parse(Source("a.pg", text), Span(start, len(text)))


def string(text):
    return Token("STRING", text, start_pos=10, end_pos=10 + len(text))


def test_positions_count_from_the_start_of_the_whole_text():
    tree = parse("garbage node A {}", start=8)
    assert not isinstance(tree, Diagnostic)
    (name,) = tree.scan_values(lambda each: isinstance(each, Token))
    assert (name.start_pos, name.end_pos) == (13, 14)


def test_an_unexpected_token_is_told_with_what_was_expected():
    wrong = parse("node {}")
    assert wrong == Diagnostic("S000", Span(5, 6), "unexpected '{'; expected a type name")


def test_an_unexpected_end_stands_after_the_last_token():
    wrong = parse("node A   // and then nothing")
    assert isinstance(wrong, Diagnostic)
    assert wrong.span == Span(6, 6)
    assert wrong.message.startswith("unexpected end; expected ")


def test_a_language_advises_on_words_of_others():
    wrong = parse("struct A {}")
    assert isinstance(wrong, Diagnostic)
    assert wrong.hint == "try node"


@pytest.mark.parametrize("text", ["node A { é: String }", "node A { \x00 }", "node A { $ }"])
def test_an_unexpected_character_is_shown_safely(text):
    wrong = parse(text)
    assert isinstance(wrong, Diagnostic)
    assert wrong.message.isprintable()
    assert wrong.span == Span(9, 10)


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        (r'"plain"', "plain"),
        (r'"\"\\\n\r\t"', '"\\\n\r\t'),
        (r'"\u00e9"', "é"),
        (r'"\uD83D\uDE00"', "😀"),
        (r'"\\u0041"', r"\u0041"),
        ('"two\nlines"', "two\nlines"),
    ],
)
def test_escapes_mean_characters(text, meaning):
    assert unescape(string(text), "S000") == meaning


@pytest.mark.parametrize(
    ("text", "span"),
    [
        (r'"a\qb"', Span(12, 14)),
        (r'"\x41"', Span(11, 13)),
        (r'"\u12"', Span(11, 13)),
        (r'"\ud83d"', Span(10, 18)),
        (r'"\ude00\ud83d"', Span(10, 24)),
    ],
)
def test_any_other_escape_is_refused_where_it_stands(text, span):
    wrong = unescape(string(text), "S000")
    assert isinstance(wrong, Diagnostic)
    assert wrong.span == span


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x" * (TEXT_LENGTH_MAX + 1), "longer than"),
        ("a\ud800", "surrogate"),
        ("(" * (NESTING_MAX + 1), "nest deeper"),
    ],
)
def test_a_text_beyond_all_bounds_is_not_read(text, message):
    (wrong,) = GRAMMAR.admit(Source("a.pg", text))
    assert message in wrong.message


def test_brackets_in_strings_and_comments_do_not_nest():
    text = '"' + "(" * 1000 + '" /*' + "{" * 1000 + "*/ //" + "[" * 1000
    assert GRAMMAR.admit(Source("a.pg", text)) == ()


def test_lexemes_never_fail():
    assert [each.group() for each in lexemes('a "unclosed \\')] == ["a"]
    assert [each.group() for each in lexemes("a /* unclosed")] == ["a"]
    assert [each.lastgroup for each in lexemes("a(b),# node C")] == [
        "word", "open", "word", "close", "other",
    ]  # fmt: skip
