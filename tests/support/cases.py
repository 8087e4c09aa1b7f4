"""Case files: a sentence, a text, and what must become of it.

A case is `=== a sentence`, the text, `---`, and the outcome. `OMNIGRAPH_BLESS=1` writes the
outcomes anew; the diff is then read as prose.
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

    def written(self) -> str:
        return f"=== {self.title}\n{self.text}---\n{self.outcome}"


def cases(path: Path) -> Iterator[Case]:
    _, *blocks = f"\n{path.read_text(encoding='utf-8')}".split("\n=== ")
    for block in blocks:
        title, _, rest = block.partition("\n")
        text, _, outcome = rest.partition("---\n")
        yield Case(title, text, outcome.rstrip("\n") + "\n")


def check(path: Path, outcome_of: Callable[[str], str]) -> None:
    """Every case of the file has its recorded outcome."""
    found = [Case(each.title, each.text, outcome_of(each.text)) for each in cases(path)]
    if os.environ.get("OMNIGRAPH_BLESS"):
        path.write_text("\n".join(each.written() for each in found), encoding="utf-8")
    recorded = {each.title: each.outcome for each in cases(path)}
    assert {each.title: each.outcome for each in found} == recorded
