"""Imports point down, and each foreign library stays in its room."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from fnmatch import fnmatch
from typing import Final

import pytest

from tests.support.sources import REPOSITORY, Source, calls, every_source

ROOMS: Final = {
    "lance": ("storage/*",),
    "obstore": ("storage/*",),
    "pyspark": (
        "engine/spark*",
        "algorithms/spark/*",
        "connector/*",
        "load/spark/*",
        "changes/spark/*",
        "evolution/spark/*",
        "export/spark/*",
        "integrity/proofs/by_key_counts.py",
        "maintenance/spark/*",
        "merge/spark/*",
        "streams/*",
    ),
    "duckdb": ("engine/local*",),
    "fastavro": ("load/readers/*",),
    "typer": ("cli/*",),
    "rich": ("cli/*",),
    "click": ("cli/*",),
    "fastapi": ("server/*",),
    "starlette": ("server/*",),
    "uvicorn": ("server/*",),
    "httpx": ("remote/*",),
    "httpcore": ("remote/*",),
    "cedarpy": ("policy/*",),
    "mcp": ("agents/*",),
    "mcp_types": ("agents/*",),
    "lark": ("lang/*", "schema/*", "query/*"),
    # Only tests need them.
    "hypothesis": (),
    "pytest": (),
}
"""Which modules may import a library, by their paths: the layout of docs/design.md as a table."""


def imported(source: Source) -> Iterator[str]:
    """Every module that a source imports, anywhere in it: at the top, lazily, or by name."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module
            yield from (f"{node.module}.{each.name}" for each in node.names)
    for name, call in calls(source.tree):
        if name.rpartition(".")[2] in ("import_module", "__import__"):
            yield from (str(each.value) for each in call.args[:1] if isinstance(each, ast.Constant))


def strays(source: Source) -> list[str]:
    """The libraries that a source imports outside their rooms."""
    roots = {name.partition(".")[0] for name in imported(source)}
    return sorted(
        library
        for library in roots & ROOMS.keys()
        if not any(fnmatch(source.path, room) for room in ROOMS[library])
    )


def test_every_library_stays_in_its_room():
    found = {each.path: strays(each) for each in every_source()}

    assert {path: libraries for path, libraries in found.items() if libraries} == {}


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        ("graph.py", "import lance", ["lance"]),
        ("graph.py", "import lance.fragment as f", ["lance"]),
        ("graph.py", "from lance.dataset import Transaction", ["lance"]),
        ("manifest/rows.py", "def f():\n    from obstore import get", ["obstore"]),
        ("graph.py", "if TYPE_CHECKING:\n    import pyspark.sql", ["pyspark"]),
        ("graph.py", "import_module('duckdb')", ["duckdb"]),
        ("graph.py", "importlib.import_module('duckdb.x', p)", ["duckdb"]),
        ("graph.py", "__import__('typer')", ["typer"]),
        ("manifest/rows.py", "try:\n    import rich\nexcept ImportError:\n    pass", ["rich"]),
        ("engine/local/run.py", "import duckdb, pyspark", ["pyspark"]),
        ("engine/spark.py", "import duckdb, pyspark", ["duckdb"]),
        ("storages/a.py", "import lance", ["lance"]),
        ("storage/a.py", "import lance, obstore", []),
        ("graph.py", "import lancet\nfrom omnigraph.storage import lance_facts", []),
    ],
)
def test_the_check_can_fail(path, text, expected):
    assert strays(Source.parse(path, text)) == expected


def test_the_layers_hold():
    program = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    said = subprocess.run(
        [sys.executable, "-c", program, "--no-cache"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )

    assert said.returncode == 0, said.stdout
    assert "0 broken" in said.stdout


def test_no_import_is_relative():
    relative = [
        each.path
        for each in every_source()
        for node in ast.walk(each.tree)
        if isinstance(node, ast.ImportFrom) and node.level
    ]

    assert relative == []
