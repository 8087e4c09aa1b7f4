"""Every command that a message, a hint or a page names is one that there is."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

from tests.support.sources import every_source
from tools import reference

ROOT: Final = Path(__file__).parents[2]
_QUOTED: Final = re.compile(r"'omnigraph ([a-z][^']*)")
_IN_PAGES: Final = re.compile(r"`omnigraph ([a-z][^`]*)`")


def named(text: str, pattern: re.Pattern[str]) -> Iterator[tuple[str, ...]]:
    """The words that follow `omnigraph` wherever a text names a command."""
    for found in pattern.finditer(text):
        yield tuple(found[1].split())


@cache
def every_command() -> frozenset[tuple[str, ...]]:
    return frozenset(tuple(path.split()[1:]) for path, _ in reference.commands())


@cache
def runnable_groups() -> frozenset[tuple[str, ...]]:
    """The groups that are commands, too."""
    found = ((tuple(path.split()[1:]), each) for path, each in reference.commands())
    return frozenset(
        path
        for path, each in found
        if getattr(each, "commands", None) and reference.is_runnable(each)
    )


def is_command(words: tuple[str, ...]) -> bool:
    """Whether a command line starts with a command, after its group if it has one."""
    known = every_command()
    groups = {path[:1] for path in known if len(path) > 1} - runnable_groups()
    # A whole group may be named; what follows it has to be one of its commands.
    return words[:1] in known and (
        words[:1] not in groups or words[:2] in known or not words[1:2] or words[1].startswith("(")
    )


def test_every_command_in_a_hint_exists():
    texts = [
        (source.path, node.value)
        for source in every_source()
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    found = [(path, words) for path, text in texts for words in named(text, _QUOTED)]

    assert len(found) > 10, "hints name commands as 'omnigraph …'"
    assert [each for each in found if not is_command(each[1])] == []


def test_every_command_in_a_page_exists():
    pages = [ROOT / "README.md", *ROOT.glob("docs/*.md")]
    found = [(page.name, words) for page in pages for words in named(page.read_text(), _IN_PAGES)]

    assert found
    assert [each for each in found if not is_command(each[1])] == []


def test_a_command_that_does_not_exist_is_told_from_one_that_does():
    assert is_command(("branch", "delete", "{name}"))
    assert is_command(("check",))
    assert is_command(("recovery",))
    assert not is_command(("mend",))
    assert not is_command(("branch", "prune"))
