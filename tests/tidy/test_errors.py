"""The drawn error tree is the real one, and every table over it is total."""

import pkgutil
import re
from collections.abc import Iterator
from importlib import import_module
from typing import Final

import pytest

import omnigraph
from omnigraph import errors
from omnigraph.cli.exits import Exit, _exits, exit_code
from omnigraph.errors import ErrorCode, OmnigraphError
from omnigraph.server.problems import _statuses, status_of

_ENTRY: Final = re.compile(r"^(?P<depth>[│ ]*)[├└]── (?P<name>\w+)")


@pytest.fixture(scope="module", autouse=True)
def _everything_is_imported() -> None:
    """Errors with a payload live beside it, so they exist only once their module was imported."""
    for each in pkgutil.walk_packages(omnigraph.__path__, "omnigraph."):
        if not each.name.endswith("__main__"):
            import_module(each.name)


def below(kind: type[OmnigraphError]) -> Iterator[type[OmnigraphError]]:
    """The subclasses that ship, at any depth; tests define some of their own."""
    for each in kind.__subclasses__():
        if each.__module__.startswith("omnigraph."):
            yield each
            yield from below(each)


def parent_of(kind: type[OmnigraphError]) -> str:
    [parent] = [each for each in kind.__bases__ if issubclass(each, OmnigraphError)]
    return parent.__name__


def drawn(text: str) -> dict[str, str]:
    """Each class of a drawing, with the one it hangs from."""
    parents: dict[str, str] = {}
    path = ["OmnigraphError"]
    for line in text.splitlines():
        if entry := _ENTRY.match(line.removeprefix("    ")):
            depth = len(entry["depth"]) // 4 + 1
            parents[entry["name"]] = path[depth - 1]
            path[depth:] = [entry["name"]]
    return parents


def test_the_drawing_is_the_tree():
    real = {each.__name__: parent_of(each) for each in below(OmnigraphError)}
    assert drawn(errors.__doc__ or "") == real


def test_every_class_of_the_drawing_is_found_where_the_drawing_is():
    for kind in below(OmnigraphError):
        assert getattr(errors, kind.__name__) is kind
    with pytest.raises(AttributeError, match="no attribute 'StrangeError'"):
        getattr(errors, "StrangeError")  # noqa: B009


def test_a_drawing_is_read_as_it_is_meant():
    text = """
    OmnigraphError
    ├── A        words
    │   ├── B
    │   └── C
    └── D
        └── E
    """
    assert drawn(text) == {
        "A": "OmnigraphError", "B": "A", "C": "A", "D": "OmnigraphError", "E": "D",
    }  # fmt: skip


def test_errors_defined_elsewhere_hang_below_a_drawn_class():
    tree = {*drawn(errors.__doc__ or ""), "OmnigraphError"}
    elsewhere = [each for each in below(OmnigraphError) if each.__module__ != errors.__name__]

    assert [each.__name__ for each in elsewhere if parent_of(each) not in tree] == []


def test_every_error_has_an_exit_code_and_none_means_success_or_usage():
    for kind in [*below(OmnigraphError)]:
        error = kind.__new__(kind)
        assert exit_code(error) not in (Exit.DONE, Exit.USAGE, Exit.INTERRUPTED), kind


def test_the_table_of_exits_names_only_classes_right_below_the_root():
    top = {each for each in below(OmnigraphError) if parent_of(each) == "OmnigraphError"}

    assert set(_exits()) == top


def test_an_error_nobody_mapped_is_our_bug_and_says_so():
    class StrangeError(OmnigraphError):
        pass

    with pytest.raises(errors.InternalError, match="StrangeError"):
        exit_code(StrangeError("strange"))


def test_every_error_of_ours_says_what_it_means():
    silent = [each.__name__ for each in below(OmnigraphError) if not each.__doc__]

    assert silent == []


def test_every_error_has_a_status_and_every_line_of_that_table_a_class():
    for kind in below(OmnigraphError):
        error = kind.__new__(kind)
        error.code = ErrorCode.INTERNAL
        assert 400 <= status_of(error) < 600
    assert set(_statuses()) <= set(below(OmnigraphError))
