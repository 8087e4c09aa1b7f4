"""Only the seam compares names of engines: elsewhere, an engine is asked for what it can do."""

import ast
import re
from collections.abc import Iterator
from typing import Final

import pytest

from tests.support.sources import Source, dotted_name, every_source

SEAM: Final = frozenset({"engine/choose.py", "backends/registry.py"})
"""What chooses an engine, and what finds it by its name (docs/decisions/0010)."""

ARGUMENTS: Final = frozenset({"cli/spark.py"})
"""What refuses options of the command line that contradict each other, before any work."""

MEMBER: Final = re.compile(r"(?:\w+\.)*Engine(?:Name|Request)?\.(?:LOCAL|SPARK)(?:\.\w+)?")
NAMES: Final = frozenset({"local", "spark", "duckdb"})
CLASSES: Final = frozenset({"LocalEngine", "SparkEngine", "LocalBackend", "SparkBackend"})


def names_engine(node: ast.AST) -> bool:
    """Whether an expression is the name of one engine, as a member or as a text."""
    if isinstance(node, ast.Constant):
        return node.value in NAMES
    return isinstance(node, ast.Attribute) and MEMBER.fullmatch(dotted_name(node)) is not None


def branches(source: Source) -> Iterator[int]:
    """The lines that depend on which engine it is: comparisons, cases, tables, classes."""
    for node in ast.walk(source.tree):
        match node:
            case ast.Compare(left=left, comparators=others):
                operands = [part for each in (left, *others) for part in (each, *elements(each))]
                is_branch = any(map(names_engine, operands))
            case ast.MatchValue(value=value):
                is_branch = names_engine(value)
            case ast.Dict(keys=keys):
                is_branch = any(key is not None and is_member(key) for key in keys)
            case ast.Call(func=ast.Name(id="isinstance" | "issubclass"), args=[_, kinds]):
                is_branch = any(named(each) in CLASSES for each in ast.walk(kinds))
            case _:
                is_branch = False
        if is_branch:
            yield node.lineno  # type: ignore[attr-defined]  # expressions and patterns have one


def is_member(node: ast.AST) -> bool:
    """Whether an expression is a member; options of other libraries have keys like our names."""
    return isinstance(node, ast.Attribute) and names_engine(node)


def elements(node: ast.expr) -> list[ast.expr]:
    """What a literal collection has."""
    return node.elts if isinstance(node, ast.Tuple | ast.List | ast.Set) else []


def named(node: ast.AST) -> str:
    """The last part of a name."""
    return (
        dotted_name(node).rpartition(".")[2] if isinstance(node, ast.Name | ast.Attribute) else ""
    )


def test_only_the_seam_depends_on_the_name_of_an_engine():
    lines = {source.path: list(branches(source)) for source in every_source()}
    strays = {path: found for path, found in lines.items() if found}

    allowed = SEAM | ARGUMENTS
    assert {path: found for path, found in strays.items() if path not in allowed} == {}
    assert strays.keys() >= allowed, "what branches no more must leave its list"


@pytest.mark.parametrize(
    "text",
    [
        "choice.engine is EngineName.SPARK",
        "choice.engine is not protocol.EngineName.LOCAL",
        "engine == options.Engine.SPARK",
        "engine is EngineRequest.LOCAL",
        "choice.engine.value == options.Engine.SPARK.value",
        "engine == 'spark'",
        "'local' != result.engine",
        "engine in (EngineName.SPARK, None)",
        "engine in {'spark', 'auto'}",
        "dialect = 'duckdb' if choice.engine is EngineName.LOCAL else 'spark'",
        "match engine:\n    case EngineName.SPARK:\n        pass",
        "match engine:\n    case 'spark':\n        pass",
        "{EngineName.LOCAL: here, EngineName.SPARK: there}[engine]",
        "isinstance(engine, SparkEngine)",
        "assert isinstance(backend, (local.LocalBackend, SparkBackend))",
    ],
)
def test_the_check_can_fail(text):
    assert list(branches(Source.parse("merge/run.py", text)))


@pytest.mark.parametrize(
    "text",
    [
        "engine: EngineName = EngineName.LOCAL",
        "Constraint(EngineName.SPARK, why)",
        "backends.of(choice.engine).run(plan, data)",
        "graph.load(rows, engine='spark')",
        "options = {'spark': 1}",
        "isinstance(node, Attribute)",
        "color is Engine.OTHER",
    ],
)
def test_names_may_be_given(text):
    assert not list(branches(Source.parse("merge/run.py", text)))
