"""Names of classes and functions: one meaning each, and no bare participles."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterable
from itertools import combinations
from typing import Final

import pytest

from tests.support.sources import Source, every_source

MIRRORS: Final = {
    frozenset(["query/ast.py", "query/ir.py"]): "a query's syntax and its meaning have like nodes",
}
"""Modules that may define classes of the same name, and why."""


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


RENAMED_SOON: Final = words(
    """
    Choice Copied Decided Declared Engine Finding Format Found Gathered Given Kept Known Left Linted
    Merged Mode OnError Op Part Pending Place Read Rounded Shaped Sifted Source
    Stored Syntax Taken Told Touched Typed Unpacked Unsettled Wanted Written
    _Counted _Decided _Held _Made _Prepared _Read _Shaped
    packed
    """
)
"""Names that break a rule below and are being renamed. Nothing may be added here."""

PARTICIPLE: Final = re.compile(r"_*[A-Z][a-z]*[^eb]ed")
IRREGULAR: Final = words(
    """
    Begun Bound Broken Brought Built Caught Chosen Done Drawn Fed Felt Forgotten Found Frozen Given
    Gone Heard Held Hidden Kept Known Laid Led Left Lent Lost Made Meant Met Paid Said Seen Sent
    Shown Spelt Spent Swept Taken Taught Thrown Told Won Written
    """
)


def definitions(source: Source, kind: type[ast.ClassDef | ast.FunctionDef]) -> list[str]:
    """The names of a module's own classes or functions."""
    return [node.name for node in source.tree.body if isinstance(node, kind)]


def room(path: str) -> str:
    """The package below `omnigraph` that a module is in, or the module itself."""
    return path.partition("/")[0]


def repeated_classes(sources: Iterable[Source]) -> list[str]:
    """Public class names that two modules of one room define and no mirror explains."""
    modules = defaultdict[tuple[str, str], list[str]](list)
    for source in sources:
        for name in definitions(source, ast.ClassDef):
            modules[room(source.path), name].append(source.path)
    return sorted(
        f"{name}: {first} and {second}"
        for (_, name), paths in modules.items()
        for first, second in combinations(paths, 2)
        if not name.startswith("_") and frozenset([first, second]) not in MIRRORS
    )


def repeated_functions(sources: Iterable[Source]) -> list[str]:
    """Public function names that two modules of one room define.

    Rooms may share one: the module distinguishes them, as in `rows.decode` and `codec.decode`.
    """
    modules = defaultdict[tuple[str, str], list[str]](list)
    for source in sources:
        for name in definitions(source, ast.FunctionDef):
            # Commands are named by what a user types.
            if not name.startswith("_") and room(source.path) != "cli":
                modules[room(source.path), name].append(source.path)
    return sorted(
        f"{name}: {' and '.join(paths)}" for (_, name), paths in modules.items() if len(paths) > 1
    )


def participles(sources: Iterable[Source]) -> list[str]:
    """Classes, private ones too, that are named by what was done and not by what they are."""
    return sorted(
        f"{name}: {source.path}"
        for source in sources
        for name in definitions(source, ast.ClassDef)
        if PARTICIPLE.fullmatch(name) or name.lstrip("_") in IRREGULAR
    )


def unexpected(offences: Iterable[str]) -> list[str]:
    return [each for each in offences if each.partition(":")[0] not in RENAMED_SOON]


def test_no_two_modules_of_a_room_define_a_public_class_of_one_name():
    assert unexpected(repeated_classes(every_source())) == []


def test_no_two_modules_of_a_room_define_a_public_function_of_one_name():
    assert unexpected(repeated_functions(every_source())) == []


def test_no_class_is_named_by_a_participle():
    assert unexpected(participles(every_source())) == []


@pytest.mark.parametrize("pair", MIRRORS, ids=lambda pair: " ".join(sorted(pair)))
def test_every_mirror_is_still_one(pair):
    names = [set(definitions(each, ast.ClassDef)) for each in every_source() if each.path in pair]
    assert set.intersection(*names)


def planted(**texts: str) -> list[Source]:
    return [Source.parse(f"{name.replace('__', '/')}.py", text) for name, text in texts.items()]


def test_a_class_that_is_defined_twice_in_a_room_is_noticed():
    sources = planted(
        merge__run="class Report: ...",
        merge__spark__run="class Report: ...",
        query__report="class Report: ...",
    )
    assert repeated_classes(sources) == ["Report: merge/run.py and merge/spark/run.py"]


def test_private_and_mirrored_classes_may_be_defined_twice():
    sources = planted(merge__run="class _Row: ...", query__report="class _Row: ...")
    mirrored = planted(query__ast="class Update: ...", query__ir="class Update: ...")
    assert repeated_classes([*sources, *mirrored]) == []


def test_a_function_that_is_defined_twice_in_a_room_is_noticed():
    sources = planted(
        load__parts="def pack(): ...",
        load__spark__stage="def pack(): ...",
        export__parts="def pack(): ...",
    )
    assert repeated_functions(sources) == ["pack: load/parts.py and load/spark/stage.py"]


@pytest.mark.parametrize("name", ["Told", "Taken", "_Held", "Shaped", "Stored", "_Armed"])
def test_a_participle_is_noticed(name):
    assert participles(planted(load__rows=f"class {name}: ...")) == [f"{name}: load/rows.py"]


@pytest.mark.parametrize("name", ["TaskReport", "StagedWrite", "Feed", "Embed", "Finding", "Need"])
def test_nouns_and_their_adjectives_are_not_participles(name):
    assert participles(planted(load__rows=f"class {name}: ...")) == []
