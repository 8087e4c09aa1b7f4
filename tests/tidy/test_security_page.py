"""The page about security names tests that exist."""

import re

from tests.support.sources import REPOSITORY


def test_every_test_that_the_page_about_security_names_exists() -> None:
    page = (REPOSITORY / "docs" / "security.md").read_text()
    functions = {
        name
        for path in (REPOSITORY / "tests").rglob("test_*.py")
        for name in re.findall(r"^def (test_\w+)", path.read_text(), re.MULTILINE)
    }
    named = re.findall(r"`(test_\w+)(…?)`", page)
    files = re.findall(r"`(tests/[\w/]+\.py)`", page)

    assert len(named) > 30
    assert [file for file in files if not (REPOSITORY / file).is_file()] == []
    missing = [
        name
        for name, cut in named
        if not any(each.startswith(name) if cut else each == name for each in functions)
    ]
    assert missing == []
