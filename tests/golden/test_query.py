"""Query texts and what becomes of them: the canonical print, the meaning, or every diagnostic."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnigraph.lang.source import Source
from omnigraph.query.codes import QueryCode
from omnigraph.query.compile import read_queries
from omnigraph.query.parser import read
from omnigraph.query.printer import print_queries
from omnigraph.schema.parser import parse_schema
from tests.support.cases import cases, check
from tests.support.query_text import describe

FOLDER = Path(__file__).parent / "query"
CATALOG = parse_schema((FOLDER / "schema.pg").read_text(encoding="utf-8"))
PRINTED = sorted(FOLDER.glob("print*.case"))
MEANT = sorted(FOLDER.glob("meaning*.case"))
REFUSED = sorted(FOLDER.glob("refused*.case"))


def printed(text: str) -> str:
    syntax = read(Source("query.gq", text))
    assert not syntax.diagnostics
    return print_queries(syntax.queries) or "\n"


def meant(text: str) -> str:
    reading = read_queries(text, CATALOG, "query.gq")
    assert reading.queries is not None, [each.message for each in reading.diagnostics]
    parts = [each.render(reading.source) for each in reading.diagnostics]
    return "\n\n".join([*map(describe, reading.queries), *parts]) + "\n"


def refused(text: str) -> str:
    reading = read_queries(text, CATALOG, "query.gq")
    assert reading.queries is None
    return "\n\n".join(each.render(reading.source) for each in reading.diagnostics) + "\n"


@pytest.mark.parametrize("path", PRINTED, ids=lambda path: path.stem)
def test_queries_have_one_canonical_print(path: Path) -> None:
    check(path, printed)
    for each in cases(path):
        assert printed(each.outcome) == each.outcome


@pytest.mark.parametrize("path", MEANT, ids=lambda path: path.stem)
def test_queries_have_their_recorded_meaning(path: Path) -> None:
    check(path, meant)


@pytest.mark.parametrize("path", REFUSED, ids=lambda path: path.stem)
def test_wrong_queries_are_refused_with_every_reason(path: Path) -> None:
    check(path, refused)


def test_every_rule_has_a_case() -> None:
    outcomes = "".join(each.outcome for path in (*REFUSED, *MEANT) for each in cases(path))
    assert [code for code in QueryCode if f"[{code}]" not in outcomes] == []
