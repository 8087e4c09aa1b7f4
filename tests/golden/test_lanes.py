"""Histories in the terminal."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from omnigraph.cli.lanes import Row, draw_lines, lay_out, to_ascii
from omnigraph.clock import encode_ulid
from omnigraph.model.commits import Commit, OperationKind
from omnigraph.model.ids import CommitId
from omnigraph.model.names import MAIN
from tests.support.cases import cases, check

CASES = Path(__file__).parent / "history.case"
FIRST = datetime(2025, 1, 1, tzinfo=UTC)


def history(text: str) -> list[Commit]:
    """Commits from lines such as `d c x`: a commit, its parent, what it merged; newest first."""
    lines = [line.split() for line in text.splitlines() if line]
    ids = {line[0]: CommitId(encode_ulid(number << 80)) for number, line in enumerate(lines)}
    ids["gone"] = CommitId(encode_ulid(10_000 << 80))

    def commit(number: int, line: list[str]) -> Commit:
        commit_id, parent, merged = [*(ids[each] for each in line), None, None][:3]
        assert commit_id is not None
        return Commit(
            commit_id=commit_id,
            branch=MAIN,
            manifest_version=1,
            parent=parent,
            merged_parent=merged,
            actor=None,
            created_at=FIRST - timedelta(minutes=number),
            operation=OperationKind.LOAD,
            message=line[0],
            schema_digest="",
        )

    return [commit(number, line) for number, line in enumerate(lines)]


def rows_of(text: str) -> list[Row]:
    commits = history(text)
    places = {each.commit_id: place for place, each in enumerate(commits)}
    assert all(
        places.get(parent, len(commits)) > place
        for place, each in enumerate(commits)
        for parent in each.parents
    ), "the case lists commits as they are drawn"
    return lay_out(commits, {each.commit_id: each for each in commits})


def in_the_terminal(text: str) -> str:
    words = (
        (marks, "" if row is None else row.commit.message)
        for marks, row in draw_lines(rows_of(text))
    )
    return "".join(f"{marks} {said}".rstrip() + "\n" for marks, said in words)


def test_histories_are_drawn_in_the_terminal() -> None:
    check(CASES, in_the_terminal)


HISTORIES = {each.title: each.text for each in cases(CASES)}


@pytest.mark.parametrize("title", HISTORIES)
def test_a_terminal_without_lines_gets_letters(title: str) -> None:
    for marks, _ in draw_lines(rows_of(HISTORIES[title])):
        assert to_ascii(marks).isascii()
        assert len(to_ascii(marks)) == len(marks)
