"""Schema texts and what becomes of them: the canonical print, or every diagnostic.

A case is `=== a sentence`, the text, `---`, and the outcome. `OMNIGRAPH_BLESS=1` writes the
outcomes anew; the diff is then read as prose.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from omnigraph.schema.parser import parse_schema, read_schema
from omnigraph.schema.printer import print_schema

FILES = sorted((Path(__file__).parent / "schema").glob("*.case"))


@dataclass(frozen=True, slots=True)
class Case:
    title: str
    text: str
    outcome: str

    def written(self) -> str:
        return f"=== {self.title}\n{self.text}---\n{self.outcome}"


def cases(path: Path) -> Iterator[Case]:
    _, *blocks = f"\n{path.read_text(encoding='utf-8')}".split("\n=== ")
    for block in blocks:
        title, _, rest = block.partition("\n")
        text, _, outcome = rest.partition("---\n")
        yield Case(title, text, outcome.rstrip("\n") + "\n")


def outcome_of(text: str) -> str:
    reading = read_schema(text)
    parts = [each.render(reading.source) for each in reading.diagnostics]
    if reading.catalog is not None:
        parts.insert(0, print_schema(reading.catalog).rstrip("\n"))
    return "\n\n".join(parts) + "\n"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_schema_texts_have_their_recorded_outcome(path: Path) -> None:
    found = [Case(each.title, each.text, outcome_of(each.text)) for each in cases(path)]
    if os.environ.get("OMNIGRAPH_BLESS"):
        path.write_text("\n".join(each.written() for each in found), encoding="utf-8")
    recorded = {each.title: each.outcome for each in cases(path)}
    assert {each.title: each.outcome for each in found} == recorded


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_recorded_prints_are_canonical(path: Path) -> None:
    for each in cases(path):
        catalog = read_schema(each.text).catalog
        if catalog is not None:
            assert parse_schema(print_schema(catalog)) == catalog
