"""Case files: a title, a text, and the expected outcome.

A case is `=== a title`, the text, `---`, and the outcome. `OMNIGRAPH_BLESS=1` rewrites the
outcomes; review the diff.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Case:
    title: str
    text: str
    outcome: str

    def format(self) -> str:
        return f"=== {self.title}\n{self.text}---\n{self.outcome}"


def cases(path: Path) -> Iterator[Case]:
    _, *blocks = f"\n{path.read_text(encoding='utf-8')}".split("\n=== ")
    for block in blocks:
        title, _, rest = block.partition("\n")
        text, _, outcome = rest.partition("---\n")
        yield Case(title, text, outcome.rstrip("\n") + "\n")


def check(path: Path, outcome_of: Callable[[str], str]) -> None:
    """Assert that every case of the file has its recorded outcome."""
    results = [Case(each.title, each.text, outcome_of(each.text)) for each in cases(path)]
    if os.environ.get("OMNIGRAPH_BLESS"):
        path.write_text("\n".join(each.format() for each in results), encoding="utf-8")
    recorded = {each.title: each.outcome for each in cases(path)}
    assert {each.title: each.outcome for each in results} == recorded


def check_text(path: Path, outcome: str) -> None:
    """Assert that a text is the recorded one."""
    if os.environ.get("OMNIGRAPH_BLESS"):
        path.write_text(outcome, encoding="utf-8")
    assert outcome == path.read_text(encoding="utf-8")
