"""A pattern is found in the same texts by RE2, by Java's engine and by Python."""

import itertools
import re
from typing import Final

import pytest

from omnigraph.integrity.patterns import make_portable
from omnigraph.model.types import Scalar
from omnigraph.schema.catalog import Check, NodeType, Property
from omnigraph.schema.patterns import pattern_fault
from omnigraph.schema.resolve import catalog_of
from tests.contract.integrity.builders import put
from tests.contract.integrity.naive import search

PATTERNS: Final = (
    "",
    "a",
    "^a",
    "a$",
    "^$",
    "^.$",
    "^.*$",
    "(?i)k",
    "(?i)^[^k]$",
    "(?i)^[J-l]$",
    "(?i)é",
    "(?i)ß",
    r"^\s$",
    r"^\S$",
    r"^[\s]$",
    r"^[^\S]$",
    r"^[\S]+$",
    r"^\w+$",
    r"^\W$",
    r"^\d+$",
    r"\D",
    r"\ba\b",
    r"\Ba",
    r"a\B",
    r"[a-]",
    r"^[\x41-\x43]$",
    r"^[\w-]+$",
    r"^[^\n]$",
    r"\x0b|\t",
    r"\.",
    r"(?:ab)+?c",
    r"(a|b){2}$",
    "é+",
    "😀",
    "^[^a]$",
    "a}",
    r"^.{2,3}$",
    r"^[\\\]\^]$",
    "[|]",
)

TEXTS: Final = (
    *("", "a", "A", "b", "aa", "abc", "ababc", "a b", "a\n", "\n", "\r", "\r\n"),
    *("\u2028", "\u0085", "\x0b", "\t", " ", "\u00a0"),
    *("k", "K", "\u212a", "s", "\u017f", "é", "É", "ß", "ẞ", "aé", "éa"),
    *("a-é", "e\u0301a", "😀", "a😀", "٣", "3", "_", "-", "J", "l", "B", "C", "D", ".", "a}", "|"),
    *("\\", "]", "^", "x" * 3000, "\x00", "\x00a", "a_", "aß", "ß a"),
)  # fmt: skip


def test_every_pattern_here_is_one_that_a_schema_takes():
    assert [each for each in PATTERNS if pattern_fault(each)] == []


def test_engines_and_python_find_the_same(place, monkeypatch):
    # One delta for all texts is one plan, and a report of it has to keep every offender.
    for module in ("drafts", "evaluate", "violations"):
        monkeypatch.setattr(f"omnigraph.integrity.{module}.OFFENDERS_SHOWN_MAX", len(TEXTS))
    names = [f"s{number}" for number in range(len(PATTERNS))]
    catalog = catalog_of(
        NodeType(
            "P",
            tuple(Property(name, Scalar.STRING) for name in names),
            checks=tuple(map(Check, names, PATTERNS)),
        )
    )
    rows = [{"id": str(at), **dict.fromkeys(names, text)} for at, text in enumerate(TEXTS)]
    report = place.check_on(place.data(catalog, {}), catalog, put(P=rows))
    found: dict[tuple[str, object], bool] = {
        (each.properties[0], each.value): False for each in report.violations
    }
    assert len(found) == report.total
    differing = [
        (pattern, text)
        for (name, pattern), text in itertools.product(zip(names, PATTERNS, strict=True), TEXTS)
        if found.get((name, text), True) != search(pattern, text)
    ]

    assert differing == []


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_rewritten_pattern_means_the_same_to_python(pattern):
    words = make_portable(pattern)
    python = re.sub(r"\\x\{([0-9A-F]+)\}", lambda m: f"\\U{int(m[1], 16):08X}", words.text)
    rewritten = re.compile(python.replace(r"\z", r"\Z"), re.ASCII)

    assert [text for text in TEXTS if bool(rewritten.search(text)) != search(pattern, text)] == []


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [(r"\ba", True), (r"\b.", True), (r"\b[^a]", True), (r"\bé", False), ("a", False)],
)
def test_a_word_boundary_is_searched_for_in_ascii_where_that_changes_nothing(pattern, expected):
    assert make_portable(pattern).is_searched_in_ascii is expected
