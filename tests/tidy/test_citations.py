"""Comments and docstrings cite only documents of this repository."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
FOLDERS: Final = ("src", "tests", "benchmarks")
SUBSTRATE: Final = "docs/substrate.md"

PAGE: Final = re.compile(r"[\w./-]+\.md\b")
DECISION: Final = re.compile(r"docs/decisions/(\w+)")
TEST: Final = re.compile(r"\btests/[\w/.-]+\.py\b")
SECTION: Final = re.compile(rf"{re.escape(SUBSTRATE)}, ([A-Z][^().;:]*)")
NOTE: Final = re.compile(r"\b[a-z]+(?:-[a-z]+)+ \d+\b|\bsection \d+\b")
"""A numbered section of private notes: the pages of this repository name their sections."""


def texts(source: str) -> Iterator[tuple[int, str]]:
    """Each docstring and each block of comments, on one line, with the line it starts at."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield node.lineno, " ".join(str(node.value.value).split())
    comments = [
        (token.start[0], token.string.lstrip("# "))
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT
    ]
    numbered = enumerate(comments)
    for _, block in groupby(numbered, key=lambda item: item[1][0] - item[0]):
        lines = [comment for _, comment in block]
        yield lines[0][0], " ".join(text for _, text in lines)


def may_cite(source: str) -> bool:
    """Whether a source has the text of a citation anywhere: most have none and need no parsing."""
    words = " ".join(source.replace("#", " ").split())
    return any(pattern.search(words) for pattern in (PAGE, DECISION, TEST, NOTE))


def unknown_citations(source: str, folder: Path) -> list[tuple[int, str]]:
    """The citations of a file in `folder` that nothing in the repository answers to."""
    if not may_cite(source):
        return []
    sections = re.findall(r"^## (.+)$", (ROOT / SUBSTRATE).read_text("utf-8"), re.MULTILINE)
    offences: list[tuple[int, str]] = []
    for line, text in texts(source):
        places = (ROOT, ROOT / "docs", folder)
        missing = [
            *(
                page
                for page in PAGE.findall(text)
                if not any((at / page).exists() for at in places)
            ),
            *(test for test in TEST.findall(text) if not (ROOT / test).exists()),
            *(
                f"docs/decisions/{number}"
                for number in DECISION.findall(text)
                if len(list((ROOT / "docs/decisions").glob(f"{number}*.md"))) != 1
            ),
            *(
                f"{SUBSTRATE}, {name}"
                for name in SECTION.findall(text)
                if not name.startswith(tuple(sections))
            ),
            *NOTE.findall(text),
        ]
        offences += [(line, citation) for citation in missing]
    return offences


def test_only_documents_of_this_repository_are_cited():
    offences = [
        f"{path.relative_to(ROOT)}:{line}: {citation}"
        for folder in FOLDERS
        for path in sorted((ROOT / folder).rglob("*.py"))
        for line, citation in unknown_citations(path.read_text("utf-8"), path.parent)
    ]
    assert offences == []


@pytest.mark.parametrize(
    ("source", "citation"),
    [
        ('"""As architecture.md says."""', "architecture.md"),
        ("# See docs/nowhere.md.", "docs/nowhere.md"),
        ("x = 1  # a pickled handle reopens main (lance-facts 4)", "lance-facts 4"),
        ("# By the protocol,\n# section 7.", "section 7"),
        ('class A:\n    """A value."""\n\n    x = 1\n    """See docs/decisions/9999."""', "9999"),
        ("# Pinned by tests/contract/lance/test_nothing.py.", "test_nothing.py"),
        ("# It is slow\n# (docs/substrate.md, No such\n# section).", "No such section"),
    ],
)
def test_a_document_that_is_elsewhere_is_noticed(source, citation):
    [(_, noticed)] = unknown_citations(source, ROOT / "tests")
    assert noticed.endswith(citation)


@pytest.mark.parametrize(
    "source",
    [
        '"""See README.md, docs/substrate.md and docs/decisions/0002."""',
        "# Slow (docs/substrate.md, Branches of a\n# table).",
        "# Pinned by tests/tidy/test_substrate.py.",
        'name = "lance-facts 4 of architecture.md"',
    ],
)
def test_a_document_that_is_here_may_be_cited(source):
    assert unknown_citations(source, ROOT / "tests") == []
