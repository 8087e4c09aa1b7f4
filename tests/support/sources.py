"""Our own source as syntax trees, for the tidy tests."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

REPOSITORY: Final = Path(__file__).parents[2]
PACKAGE: Final = REPOSITORY / "src" / "omnigraph"


@dataclass(frozen=True, slots=True)
class Source:
    """One module: its path below the package, and its tree."""

    path: str
    tree: ast.Module

    @classmethod
    def parse(cls, path: str, text: str) -> "Source":
        """A module that need not exist, to show that a checker can fail."""
        return cls(path, ast.parse(text))


@cache
def every_source() -> tuple[Source, ...]:
    """Every module of the package."""
    return tuple(
        Source.parse(file.relative_to(PACKAGE).as_posix(), file.read_text(encoding="utf-8"))
        for file in sorted(PACKAGE.rglob("*.py"))
    )


def dotted_name(node: ast.expr) -> str:
    """`a.b.c` for such an expression; calls and subscripts in it are omitted.

    >>> dotted_name(ast.parse("a.b(1).c[2].d", mode="eval").body)
    'a.b.c.d'
    """
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=name):
            return f"{dotted_name(value)}.{name}"
        case ast.Call(func=inner) | ast.Subscript(value=inner):
            return dotted_name(inner)
        case _:
            return ""


def calls(tree: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    """Every call below `tree`, with the dotted name of its function."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield dotted_name(node.func), node
