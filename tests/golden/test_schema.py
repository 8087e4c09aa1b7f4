"""Schema texts and what becomes of them: the canonical print, or every diagnostic."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnigraph.schema.mermaid import schema_mermaid
from omnigraph.schema.parser import parse_schema, read_schema
from omnigraph.schema.printer import print_schema
from tests.support.cases import cases, check

FILES = sorted((Path(__file__).parent / "schema").glob("*.case"))


def outcome_of(text: str) -> str:
    reading = read_schema(text, "schema.pg")
    parts = [each.render(reading.source) for each in reading.diagnostics]
    if reading.catalog is not None:
        parts.insert(0, print_schema(reading.catalog).rstrip("\n"))
    return "\n\n".join(parts) + "\n"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_schema_texts_have_their_recorded_outcome(path: Path) -> None:
    check(path, outcome_of)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_recorded_prints_are_canonical(path: Path) -> None:
    for each in cases(path):
        catalog = read_schema(each.text).catalog
        if catalog is not None:
            assert parse_schema(print_schema(catalog)) == catalog


def test_schemas_become_mermaid() -> None:
    path = Path(__file__).parent / "mermaid.case"
    check(path, lambda text: schema_mermaid(parse_schema(text)))
