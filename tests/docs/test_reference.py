"""The reference pages say what the code says now."""

import os
import re
from pathlib import Path
from typing import Final

import pytest

import omnigraph
from omnigraph.errors import ErrorCode
from omnigraph.query.codes import QueryCode
from omnigraph.schema.findings import SchemaCode
from tools import reference

ROOT: Final = Path(__file__).parents[2]


@pytest.mark.parametrize("path", reference.PAGES)
def test_a_generated_page_is_what_its_generator_gives_now(path: str) -> None:
    now = reference.PAGES[path]()
    page = ROOT / path
    if os.environ.get("OMNIGRAPH_BLESS"):
        page.write_text(now, encoding="utf-8")
    assert page.read_text(encoding="utf-8") == now, "run OMNIGRAPH_BLESS=1 pytest tests/docs"


def test_every_command_is_documented() -> None:
    page = (ROOT / "docs/reference/cli.md").read_text(encoding="utf-8")
    commands = [path for path, each in reference.commands() if reference.is_runnable(each)]
    assert [path for path in commands if f"\n## {path}\n" not in page] == []
    assert "omnigraph query" in commands


def test_every_command_and_option_has_a_help_text() -> None:
    silent = [
        f"{path} {each.name}"
        for path, command in reference.commands()
        for each in command.params
        if not each.help
    ]
    assert silent == []
    assert [path for path, command in reference.commands() if not command.help] == []


def test_every_code_is_documented() -> None:
    page = (ROOT / "docs/reference/errors.md").read_text(encoding="utf-8")
    codes = [*ErrorCode, *SchemaCode, *QueryCode]
    assert [each for each in codes if f"| `{each}` |" not in page] == []


def test_every_public_name_is_documented_and_no_private_one() -> None:
    page = (ROOT / "docs/reference/python.md").read_text(encoding="utf-8")
    documented = {*omnigraph.__all__} - {"Graph", "errors"}
    assert [
        each for each in documented if not re.search(rf"### `(omnigraph\.)?{each}`", page)
    ] == []
    assert re.findall(r"^- `_\w+", page, re.MULTILINE) == []
    for method in ("rows()", "arrow()", "pandas()", "frame()", "rows() -> Iterator[RowChange]"):
        assert f"\n- `{method}" in page


def test_every_page_is_in_the_index() -> None:
    index = (ROOT / "docs/README.md").read_text(encoding="utf-8")
    pages = {each.relative_to(ROOT / "docs").as_posix() for each in ROOT.glob("docs/**/*.md")}
    records = {each for each in pages if each.startswith("decisions/0")}
    assert (
        sorted(each for each in pages - records - {"README.md"} if f"({each})" not in index) == []
    )
