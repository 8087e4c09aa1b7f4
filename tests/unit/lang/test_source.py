from __future__ import annotations

import pytest

from omnigraph.lang.source import Position, Source, Span


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_every_editors_line_ending_ends_a_line(ending):
    source = Source("a.pg", f"one{ending}two{ending}three")
    assert source.position(source.text.index("three")) == Position(3, 1)
    assert source.line(2) == "two"


def test_other_separators_do_not_end_a_line():
    source = Source("a.pg", "one\u2028two\x0bthree")
    assert source.position(len(source.text)) == Position(1, len(source.text) + 1)


def test_the_end_of_a_text_has_a_position():
    assert Source("a.pg", "").position(0) == Position(1, 1)
    assert Source("a.pg", "a\n").position(2) == Position(2, 1)


def test_spans_join():
    assert Span(1, 3).to(Span(5, 8)) == Span(1, 8)
    assert Source("a.pg", "abcdef").at(Span(1, 3)) == "bc"
