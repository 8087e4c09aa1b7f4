"""Laws of the schema language: text, catalog and JSON are equivalent, and no text crashes it."""

from __future__ import annotations

import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from omnigraph.lang.diagnostics import DiagnosticsError, errors_in
from omnigraph.schema import codec
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.parser import parse_schema, read_schema
from omnigraph.schema.printer import print_schema
from omnigraph.schema.resolve import catalog_of
from tests.strategies.schemas import catalogs, declarations

slow_to_draw = settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)

FRAGMENTS = st.sampled_from(
    ["node ", "edge ", "interface ", "A", "b", ":", "->", "{", "}", "(", ")", "[", "]", "@key", "?",
     "@range(b, 0..", "..", '"', "\\", "//", "/*", "*/", "#", "\n", "-1", "2.5", "enum(", "Vector(",
     "String", "implements ", "@default(", "=", ",", "\x00", "\ud800", "é", "\u2028"]
)  # fmt: skip


def read_or_refuse(text):
    """Read a text; a refusal must have a place and a reason. No other exception may be raised."""
    reading = read_schema(text)
    for diagnostic in reading.diagnostics:
        assert diagnostic.message
        assert 0 <= diagnostic.span.start <= diagnostic.span.end <= len(text)
    if reading.catalog is None:
        with pytest.raises(DiagnosticsError) as caught:
            parse_schema(text)
        assert errors_in(caught.value.diagnostics)
        assert str(caught.value).isprintable() or "\n" in str(caught.value)


@given(catalogs)
@slow_to_draw
def test_a_printed_catalog_reads_back_as_itself(catalog):
    assert parse_schema(print_schema(catalog)) == catalog


@given(catalogs)
@slow_to_draw
def test_printing_is_canonical(catalog):
    text = print_schema(catalog)
    assert print_schema(parse_schema(text)) == text


@given(catalogs)
@slow_to_draw
def test_json_reads_back_as_the_catalog_it_was(catalog):
    text = codec.encode(catalog)
    assert codec.decode(text) == catalog
    assert codec.encode(codec.decode(text)) == text


@given(declarations(), st.randoms(use_true_random=False))
@slow_to_draw
def test_the_order_of_declarations_does_not_matter(made, random):
    shuffled = random.sample(made, len(made))
    assert codec.digest(catalog_of(*shuffled)) == codec.digest(catalog_of(*made))


@given(catalogs)
@slow_to_draw
def test_every_type_has_a_table(catalog):
    for type_ in catalog.types:
        names = table_schema(type_).names
        assert names[-len(type_.properties) or len(names) :] == [p.name for p in type_.properties]


@given(st.text(st.characters(), max_size=200))
def test_any_text_is_read_or_refused(text):
    read_or_refuse(text)


@given(st.lists(FRAGMENTS, max_size=60).map("".join))
def test_any_jumble_of_the_languages_own_words_is_read_or_refused(text):
    read_or_refuse(text)


@given(catalogs, st.data())
@slow_to_draw
def test_a_damaged_schema_is_read_or_refused(catalog, data):
    text = print_schema(catalog)
    at = data.draw(st.integers(0, len(text)))
    gone = data.draw(st.integers(0, 8))
    read_or_refuse(text[:at] + data.draw(FRAGMENTS | st.just("")) + text[at + gone :])


@given(catalogs)
@slow_to_draw
def test_an_error_in_one_declaration_leaves_the_others_read(catalog):
    text = print_schema(catalog)
    errors = errors_in(read_schema(f"node A_ {{ b String }}\n{text}").diagnostics)
    assert [each.code for each in errors] == ["S000"]


@pytest.mark.parametrize(
    "text",
    [
        "{" * 120_000,
        "[(" * 100_000,
        'node A { a: String @description("' + "x" * 250_000 + '") }',
        'node A { a: String @description("' + "\\n" * 100_000 + '") }',
        '"\\' * 100_000,
        "/*" * 100_000,
        "node " * 200_000,
        "node A " * 100_000,
        "//" * 120_000,
        "node A { a: enum(" + "a, " * 10_000 + "a) }",
        "node A { @key(" + "a, " * 10_000 + "a) }",
        "node A { " + "a: String " * 5_000 + "}",
        "node A { " + " ".join(f"v{i}: Vector(3) @embed(v0)" for i in range(2_000)) + "}",
        "".join(f"edge E{i}: Abcdefghijkl{i} -> Abcdefghijkm{i} " for i in range(2_000)),
        "node A { a: I64 @default(" + "9" * 250_000 + ") }",
        "node A { a: Vector(" + "9" * 250_000 + ") }",
        "node A { a: F64 @default(" + "9" * 50_000 + ".5) }",
        "node " + "A" * 250_000 + " {}",
        "x" * 2_000_000,
        "\x00" * 250_000,
        "\n" * 250_000 + "#",
    ],
    ids=lambda text: text[:20].encode("ascii", "backslashreplace").decode(),
)
def test_a_huge_text_is_answered_in_seconds(text):
    # The time of this process alone, so that the load of the machine does not matter.
    started = time.process_time()
    read_schema(text)
    assert time.process_time() - started < 20
