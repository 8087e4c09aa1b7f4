from __future__ import annotations

import pickle
from typing import cast

import pytest

from omnigraph.errors import ErrorCode, InvalidInputError
from omnigraph.lang.diagnostics import (
    Diagnostic,
    DiagnosticsError,
    Severity,
    did_you_mean,
    errors_in,
    nearest,
)
from omnigraph.lang.source import Source, Span

SOURCE = Source("a.pg", "node A {\n\tname: Strng\n}")
WRONG = Diagnostic("S001", Span(16, 21), "unknown type Strng", "did you mean String?")
REMARK = Diagnostic("S100", Span(5, 6), "look", severity=Severity.WARNING)


def test_the_caret_stands_under_the_span_even_after_a_tab():
    *_, line, caret = WRONG.render(SOURCE).split("\n")
    assert caret.index("^") == line.index("Strng")
    assert caret.count("^") == len("Strng")


def test_a_warning_is_rendered_as_one():
    assert REMARK.render(SOURCE).startswith("warning[S100]: look\n")


def test_a_span_over_several_lines_is_underlined_on_its_first():
    rendered = Diagnostic("S000", Span(5, 21), "oops").render(SOURCE)
    assert rendered.endswith("1 | node A {\n  |      ^^^")


def test_a_span_at_the_end_still_has_a_caret():
    assert Diagnostic("S000", Span(23, 23), "oops").render(SOURCE).endswith("^")


def test_a_line_of_a_megabyte_is_cut_around_the_span():
    source = Source("a.pg", "x" * 500_000 + "HERE" + "y" * 500_000)
    rendered = Diagnostic("S000", Span(500_000, 500_004), "oops").render(source)
    *_, line, caret = rendered.split("\n")
    assert len(line) < 200
    assert line[caret.index("^") :].startswith("HEREy")


def test_what_a_terminal_would_obey_is_escaped():
    rendered = Diagnostic("S000", Span(1, 2), "oops").render(Source("a.pg", "a\x1b[2J\ud800"))
    assert "\x1b" not in rendered
    assert "\\x1b" in rendered
    rendered.encode()


def test_an_error_carries_its_diagnostics_and_tells_them():
    error = DiagnosticsError([REMARK, WRONG], SOURCE, code=ErrorCode.INVALID_SCHEMA)
    assert isinstance(error, InvalidInputError)
    assert error.diagnostics == (REMARK, WRONG)
    assert str(error).startswith("a.pg has 1 error\n\nerror[S001]: unknown type Strng")
    facts = {
        "code": "S001",
        "severity": "error",
        "line": 2,
        "column": 8,
        "message": "unknown type Strng",
        "hint": "did you mean String?",
    }
    assert facts in cast("list[object]", error.details["diagnostics"])


def test_an_error_with_hundreds_of_diagnostics_shows_the_first():
    error = DiagnosticsError([WRONG] * 300, SOURCE)
    assert str(error).endswith("… and 280 more")
    assert len(error.diagnostics) == 300


def test_an_error_survives_pickling():
    error = DiagnosticsError([WRONG], SOURCE, code=ErrorCode.INVALID_SCHEMA)
    again = pickle.loads(pickle.dumps(error))
    assert (again.diagnostics, again.source, again.code) == ((WRONG,), SOURCE, error.code)


def test_warnings_are_not_errors():
    assert errors_in([WRONG, REMARK]) == (WRONG,)


@pytest.mark.parametrize(
    ("name", "known", "expected"),
    [
        ("Strng", ["String"], "String"),
        ("string", ["Bool", "String"], "String"),
        ("knows", ["Knows", "Owns"], "Knows"),
        ("Quux", ["String"], None),
        ("x" * 10_000, ["x" * 10_000], None),
        ("", ["a"], None),
    ],
)
def test_the_nearest_name_is_found(name, known, expected):
    assert nearest(name, known) == expected


def test_advice_falls_back_to_what_is_always_true():
    assert did_you_mean("Quux", ["String"], otherwise="one of String") == "one of String"
