"""Graphs that the Rust releases wrote (tests/originals), and what those releases answered."""

import json
import tarfile
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from omnigraph import Commit
from tests.support.sources import REPOSITORY

SAMPLES: Final = REPOSITORY / "tests" / "originals"
RELEASES: Final = ("0.8.0", "0.7.2")
INTERRUPTED: Final = (1, 2, 3, 4)
BRANCHES: Final = ("main", "draft", "deep/er", "review/1")

Row = tuple[Any, ...]


def unpack(sample: str, folder: Path) -> Path:
    """The graph of a sample, such as `0.8.0/graph`, below a folder: it is a moved graph there."""
    with tarfile.open(SAMPLES / f"{sample}.tar.gz") as packed:
        packed.extractall(folder, filter="data")
    return folder / "graph.omni"


def answers(release: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((SAMPLES / release / "answers.json").read_text())
    return found


def outcome(number: int) -> dict[str, Any]:
    """What the release did with an interrupted graph at its next write."""
    path = SAMPLES / "0.8.0-interrupted" / f"interrupted-{number}.json"
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def files(root: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def theirs(lines: Iterable[str]) -> frozenset[Row]:
    """The rows of an export of a Rust release: dates are days there, and times have no zone."""
    found = []
    for line in lines:
        record = json.loads(line)
        data = dict(record["data"])
        for name in ("born", "since"):
            if data.get(name) is not None:
                data[name] = str(date(1970, 1, 1) + timedelta(days=data[name]))
        if data.get("seen") is not None:
            data["seen"] += "Z"
        id_ = data.pop("id")
        found.append(_row(record, id_ if "edge" in record else None, data))
    assert len(set(found)) == len(found)
    return frozenset(found)


def ours(lines: Iterable[str]) -> frozenset[Row]:
    """The rows of an export of ours."""
    records = [json.loads(line) for line in lines]
    found = [_row(record, record.get("id"), record["data"]) for record in records]
    assert len(set(found)) == len(found)
    return frozenset(found)


def _row(record: dict[str, Any], id_: str | None, data: dict[str, Any]) -> Row:
    values = json.dumps(data, sort_keys=True)
    if "edge" in record:
        return record["edge"], id_, record["from"], record["to"], values
    return record["type"], values


def recorded_commits(release: str, branch: str) -> list[Row]:
    """The commits of a branch as the release listed them, oldest first."""
    listed = json.loads(answers(release)["commits"][branch])["commits"]
    return [_recorded(commit) for commit in listed]


def _recorded(commit: dict[str, Any]) -> Row:
    at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=commit["created_at"])
    ids = (commit["graph_commit_id"], commit["parent_commit_id"], commit["merged_parent_commit_id"])
    return (*ids, commit["manifest_branch"] or "main", commit["actor_id"], at)


def recovered_commits(number: int) -> list[Row]:
    return [_recorded(commit) for commit in outcome(number)["commits_after"]["commits"]]


def shown(commit: Commit) -> Row:
    """A commit of ours in the form of `recorded_commits`."""
    ids = (commit.commit_id, commit.parent, commit.merged_parent)
    return (*ids, commit.branch, commit.actor, commit.created_at)


def rows_by_commit(release: str) -> dict[str, frozenset[Row]]:
    """By commit, all rows of the graph: from the answers at heads, and what each step says.

    Ids of edges are those of the answers. Where two ways lead to a commit, both must agree.
    """
    main, draft, deep, review = (theirs(answers(release)["branches"][name]) for name in BRANCHES)
    d2, d1 = draft, draft - _those(draft, "Ann")
    m3 = d1 - _those(d1, "Paris")
    m2 = m3 - _those(m3, "Zoe")
    m4 = m3 | _those(main, "10.1/main")
    m5 = m4 | (d2 - m3)
    m6 = m5 | frozenset(row for row in main if row[0] == "Knows" and row[2:4] == ("p10", "p11"))
    oslo = next(row for row in main if row[0] == "City" and '"Oslo"' in row[1])
    m7 = main - {oslo} | {("City", oslo[1].replace("710000", "700000"))}
    assert m7 == frozenset(row for row in m6 if not (row[0] == "Knows" and row[2] == "p12"))
    p03 = frozenset(row for row in review if row[0] == "Person" and '"name": "p03"' in row[1])
    old_p03 = frozenset(row for row in m6 if row[0] == "Person" and '"name": "p03"' in row[1])
    r1 = m6 - old_p03 | p03 | _those(review, "new1")
    paper = next(row for row in r1 if row[0] == "Paper" and '"10.1/0"' in row[1])
    r2 = r1 - {paper} | {("Paper", paper[1].replace('"draft"', '"published"'))}
    assert review == r2 - _those(r2, "p06")
    assert len(deep - d2) == 1
    assert not d2 - deep
    seed = (SAMPLES / release / "seed.jsonl").read_text().splitlines()
    assert len(m2) == len(seed)
    states = {
        "main": [frozenset(), m2, m3, m4, m5, m6, m7, main],
        "draft": [d1, d2],
        "deep/er": [deep],
        "review/1": [r1, r2, review],
    }
    found: dict[str, frozenset[Row]] = {}
    for branch, expected in states.items():
        own = [row[0] for row in recorded_commits(release, branch) if row[3] == branch]
        found |= dict(zip(own, expected, strict=True))
    return found


def _those(rows: Iterable[Row], name: str) -> frozenset[Row]:
    """The node of a name, and the edges from and to it."""
    quoted = json.dumps(name)
    return frozenset(
        row for row in rows if name in row[2:4] or (len(row) == 2 and quoted in row[1])
    )
