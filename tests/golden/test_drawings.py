"""Histories and schemas, and the pictures that they become."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from omnigraph.clock import encode_ulid
from omnigraph.drawings.histories import history_svg
from omnigraph.drawings.lanes import Row, lay_out
from omnigraph.drawings.mermaid import schema_mermaid
from omnigraph.drawings.schemas import schema_svg
from omnigraph.drawings.terminal import draw_lines, to_ascii
from omnigraph.model.commits import Commit, OperationKind
from omnigraph.model.ids import CommitId
from omnigraph.model.names import MAIN
from omnigraph.schema.parser import parse_schema
from tests.support.cases import cases, check

FOLDER = Path(__file__).parent / "drawings"
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
    check(FOLDER / "history.case", in_the_terminal)


def test_schemas_become_mermaid() -> None:
    check(FOLDER / "mermaid.case", lambda text: schema_mermaid(parse_schema(text)))


def test_schemas_become_svg() -> None:
    check(FOLDER / "schema.case", lambda text: schema_svg(parse_schema(text), title="a schema"))


HISTORIES = {each.title: each.text for each in cases(FOLDER / "history.case")}
SCHEMAS = {each.title: each.text for each in cases(FOLDER / "schema.case")}


@pytest.mark.parametrize("title", HISTORIES)
def test_a_terminal_without_lines_gets_letters(title: str) -> None:
    for marks, _ in draw_lines(rows_of(HISTORIES[title])):
        assert to_ascii(marks).isascii()
        assert len(to_ascii(marks)) == len(marks)


@pytest.mark.parametrize("title", HISTORIES)
def test_a_history_in_svg_has_every_commit_and_every_line(title: str) -> None:
    rows = rows_of(HISTORIES[title])
    tips = {rows[0].commit.commit_id: ["main", "<odd & name>"]} if rows else {}

    picture = history_svg(rows, tips, title="a history")

    root = ET.fromstring(picture)
    words = "".join(root.itertext())
    known = {each.commit.commit_id for each in rows}
    links = [parent for each in rows for parent in each.commit.parents if parent in known]
    assert len(root.findall("{*}circle")) == len(rows)
    assert len(root.findall("{*}path")) == len(links)
    assert all(each.commit.commit_id in words for each in rows)
    assert ("[<odd & name>]" in words) is bool(rows)
    assert picture == history_svg(rows, tips, title="a history")


@pytest.mark.parametrize("title", SCHEMAS)
def test_no_box_of_a_schema_lies_on_another(title: str) -> None:
    picture = schema_svg(parse_schema(SCHEMAS[title]), title="a schema")

    boxes = [
        tuple(float(each.attrib[name]) for name in ("x", "y", "width", "height"))
        for each in ET.fromstring(picture).iter("{http://www.w3.org/2000/svg}rect")
        if each.get("class") == "box"
    ]
    for place, (x, y, width, height) in enumerate(boxes):
        for other_x, other_y, other_width, other_height in boxes[place + 1 :]:
            apart = x + width <= other_x or other_x + other_width <= x
            assert apart or y + height <= other_y or other_y + other_height <= y
