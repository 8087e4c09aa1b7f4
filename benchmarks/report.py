"""Reports: ratios first, then times; as text to read now and as a section of RESULTS.md."""

import os
import platform
import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from statistics import median
from typing import Final

from benchmarks.rounds import Outcome, Timed, Untimed

RESULTS: Final = Path(__file__).parent / "RESULTS.md"
_TITLE: Final = "# Benchmarks\n\nEach section is written by its program; `make bench` runs them.\n"

_WHY_SHOWN_MAX: Final = 60
"""Characters of the reason why a contestant has no time."""

Outcomes = Mapping[str, Mapping[str, Outcome]]
"""By task, then by contestant; ours comes first."""


def ratios(outcomes: Outcomes, *, to: str) -> str:
    """A table of each contestant's median time divided by that of `to`."""
    names = _names(outcomes)
    others = [name for name in names if name != to]
    rows = [
        [task, *(_ratio(each.get(name), each[to]) for name in others)]
        for task, each in outcomes.items()
    ]
    return table(["", *(f"{name} / {to}" for name in others)], rows)


def times(outcomes: Outcomes) -> str:
    """A table of median times, with what stood in the way of the others."""
    names = _names(outcomes)
    rows = [[task, *(_time(each.get(name)) for name in names)] for task, each in outcomes.items()]
    return table(["", *names], rows)


def spreads(outcomes: Mapping[str, Outcome], *, to: str) -> str:
    """A table with a line per contestant: median times divided by that of `to`, p50 and p95."""
    rows = [
        [name, _ratio(each, outcomes[to]), _time(each), _time_p95(each)]
        for name, each in outcomes.items()
    ]
    return table(["", f"/ {to}", "p50", "p95"], rows)


def goal(found: str, why_missed: str, *, is_met: bool, is_measured: bool = True) -> str:
    """A line that says whether a goal is met; the reason stands there only if it is not.

    Args:
        is_measured: Whether the size was the one that the goal is about.
    """
    if not is_measured:
        return f"- not measured at this size: {found}."
    return f"- met: {found}." if is_met else f"- **missed**: {found}. {why_missed}".rstrip()


def ratio_of(one: Outcome | None, other: Outcome | None) -> float | None:
    """How many times longer the one took, if both have times."""
    if isinstance(one, Timed) and isinstance(other, Timed):
        return one.median / other.median
    return None


def median_ratio(outcomes: Outcomes, one: str, other: str) -> float | None:
    """The median over all tasks of how many times longer the one took."""
    found = [ratio_of(each.get(one), each.get(other)) for each in outcomes.values()]
    known = [each for each in found if each is not None]
    return median(known) if known else None


def wins(outcomes: Outcomes, one: str, other: str) -> tuple[int, int]:
    """On how many tasks the one was faster, and how many have a time of both."""
    found = [ratio_of(each[one], each.get(other)) for each in outcomes.values()]
    known = [each for each in found if each is not None]
    return sum(each < 1 for each in known), len(known)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table, laid out to be read as it is."""
    lines = [list(head), *map(list, rows)]
    widths = [max(len(line[place]) for line in lines) for place in range(len(head))]
    marks = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    return "\n".join(
        "| "
        + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        + " |"
        for line in [lines[0], marks, *lines[1:]]
    )


@dataclass(frozen=True, slots=True)
class Start:
    """What is known only before the work: others may commit meanwhile, and the work is a load.

    Attributes:
        load: Of the machine; None where the work was done in several runs.
    """

    commit: str
    load: float | None


def start() -> Start:
    asked = ["git", "rev-parse", "--short", "HEAD"]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    return Start(done.stdout.strip() or "unknown", os.getloadavg()[0])


def circumstances(start: Start, *, versions: Iterable[str] = ()) -> str:
    """The machine, the versions, the date and the commit, in one paragraph."""
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    ours = [f"{name} {metadata.version(name)}" for name in ("duckdb", "pylance", "pyarrow")]
    parts = [
        f"{os.cpu_count()} cores, {pages / 2**30:.0f} GiB, {platform.machine()}",
        *([] if start.load is None else [f"load {start.load:.1f} before the start"]),
        f"Python {platform.python_version()}, {', '.join([*ours, *versions])}",
        f"{datetime.now(UTC):%Y-%m-%d}, commit {start.commit}",
    ]
    return "; ".join(parts) + "."


def write_section(title: str, text: str, path: Path = RESULTS) -> None:
    """Put a section into the results, in the place of its predecessor."""
    before = path.read_text() if path.exists() else _TITLE
    section = f"\n## {title}\n\n{text.strip()}\n"
    old = re.compile(rf"\n## {re.escape(title)}\n.*?(?=\n## |\Z)", re.DOTALL)
    after = old.sub(lambda _: section, before) if old.search(before) else before + section
    path.write_text(after)


def _names(outcomes: Outcomes) -> list[str]:
    return list(dict.fromkeys(name for each in outcomes.values() for name in each))


def _ratio(one: Outcome | None, other: Outcome | None) -> str:
    found = ratio_of(one, other)
    if found is None:
        return "-"
    return f"{found:.2f}" if found < 10 else f"{found:.0f}"


def _time_p95(outcome: Outcome) -> str:
    return f"{outcome.p95 * 1000:.2f} ms" if isinstance(outcome, Timed) else "-"


def _time(outcome: Outcome | None) -> str:
    match outcome:
        case Timed():
            return f"{outcome.median * 1000:.2f} ms"
        case Untimed(why):
            return why.replace("|", "/")[:_WHY_SHOWN_MAX]
        case None:
            return "-"
