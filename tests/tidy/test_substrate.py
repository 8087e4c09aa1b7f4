"""docs/substrate.md and the contract tests say the same."""

import ast
import re
from collections import Counter
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs" / "substrate.md"
SUITES: Final = (
    ROOT / "tests/contract/duckdb",
    ROOT / "tests/contract/lance",
    ROOT / "tests/contract/objects",
    ROOT / "tests/contract/spark/facts",
)


def written() -> Counter[tuple[str, str]]:
    """Each contract test, as its file and its name."""
    return Counter(
        (path.relative_to(ROOT).as_posix(), node.name)
        for suite in SUITES
        for path in suite.rglob("test_*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    )


def named() -> Counter[tuple[str, str]]:
    """Each test the page names, with the file its section is about."""
    found: Counter[tuple[str, str]] = Counter()
    for section in PAGE.read_text(encoding="utf-8").split("\n## ")[1:]:
        [file] = re.findall(r"^`(tests/\S+\.py)`", section, flags=re.MULTILINE)
        found.update((file, name) for name in re.findall(r"`(test_\w+)`", section))
    return found


def test_every_test_the_page_names_exists():
    assert sorted(named().keys() - written().keys()) == []


def test_every_contract_test_is_on_the_page():
    assert sorted(written().keys() - named().keys()) == []


def test_nothing_is_named_twice():
    assert [each for each, times in (named() + written()).items() if times > 2] == []
