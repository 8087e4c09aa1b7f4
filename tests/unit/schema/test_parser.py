"""What golden files cannot say; everything a text can break is in tests/golden/schema."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnigraph.errors import ErrorCode
from omnigraph.lang.diagnostics import DiagnosticsError, Severity
from omnigraph.schema.findings import SchemaCode
from omnigraph.schema.parser import parse_schema, read_schema

GOLDEN = Path(__file__).parents[2] / "golden" / "schema"


def test_all_errors_come_in_one_exception_in_the_order_of_the_text():
    text = "edge E: A -> B\nnode A { id: Strng }\nnode b {}"
    with pytest.raises(DiagnosticsError) as caught:
        parse_schema(text, "mine.pg")
    assert caught.value.code is ErrorCode.INVALID_SCHEMA
    assert [each.code for each in caught.value.diagnostics] == ["S002", "S007", "S001", "S000"]
    assert "mine.pg:2:14" in str(caught.value)


def test_warnings_do_not_refuse_a_schema():
    reading = read_schema("node A @note {}")
    assert reading.catalog is not None
    assert [each.severity for each in reading.diagnostics] == [Severity.WARNING]


def test_every_code_is_shown_by_a_golden_case():
    shown = "".join(path.read_text(encoding="utf-8") for path in GOLDEN.glob("*.case"))
    assert [each for each in SchemaCode if f"[{each}]:" not in shown] == []


def test_every_code_has_its_own_sentence():
    sentences = [each.sentence for each in SchemaCode]
    assert len(set(sentences)) == len(sentences)
    assert all(each.endswith(".") for each in sentences)


def test_looking_ends_after_a_hundred_errors():
    text = "".join(f"edge E{number}: A -> B " for number in range(500))
    assert len(read_schema(text).diagnostics) == 100
    assert len(read_schema("node A " * 500).diagnostics) == 100


def test_a_byte_order_mark_is_not_part_of_the_language():
    (wrong,) = read_schema("\ufeffnode A {}").diagnostics
    assert wrong.span.start == 0
