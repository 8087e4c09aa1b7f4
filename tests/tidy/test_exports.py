"""What `import omnigraph` gives is what it lists, and it costs nothing until it is used."""

import ast
import json
import re
import subprocess
import sys
from importlib import metadata
from inspect import isfunction
from typing import Any, Final

import pytest

import omnigraph
from omnigraph import errors
from omnigraph.accessors.algorithms import Algorithms
from omnigraph.accessors.branches import BranchList
from omnigraph.accessors.embeddings import Embeddings
from omnigraph.accessors.history import Commits
from omnigraph.accessors.indexes import IndexList
from omnigraph.accessors.proposals import ProposalList
from omnigraph.accessors.recoveries import Recoveries
from omnigraph.accessors.schema import Schema
from omnigraph.accessors.settings import GraphSettings
from omnigraph.accessors.stored_queries import StoredQueries
from omnigraph.accessors.streams import StreamList
from omnigraph.accessors.tags import TagList
from omnigraph.graph import Graph
from tests.support.sources import every_source

HEAVY: Final = (
    "lance",
    "pyarrow",
    "obstore",
    "numpy",
    "pyspark",
    "duckdb",
    "lark",
    "typer",
    "rich",
)


def fresh(program: str) -> Any:
    """What a new interpreter answers: nothing was imported before."""
    said = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return json.loads(said.stdout)


def declared_for_type_checkers() -> set[str]:
    [root] = [each for each in every_source() if each.path == "__init__.py"]
    [block] = [
        node
        for node in root.tree.body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    ]
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    return {alias.asname or alias.name for each in imports for alias in each.names}


def test_the_list_is_sorted_and_names_nothing_twice():
    assert list(omnigraph.__all__) == sorted(set(omnigraph.__all__))


def test_every_listed_name_can_be_imported():
    for name in omnigraph.__all__:
        assert getattr(omnigraph, name) is not None


def test_every_importable_name_is_listed():
    assert declared_for_type_checkers() == set(omnigraph.__all__)
    assert {*omnigraph._HOMES, "errors"} == set(omnigraph.__all__)


def given_by(kind: type) -> set[str]:
    """The words in what a class's public methods and properties say they give."""
    public = [each for name, each in vars(kind).items() if not name.startswith("_")]
    functions = [each.fget if isinstance(each, property) else each for each in public]
    said = [each.__annotations__.get("return", "") for each in functions if isfunction(each)]
    return {word for text in said for word in re.findall(r"[\w.]+", text)}


def test_every_class_that_a_graph_gives_is_listed():
    parts = (
        Algorithms,
        BranchList,
        Commits,
        Embeddings,
        GraphSettings,
        IndexList,
        ProposalList,
        Recoveries,
        Schema,
        StoredQueries,
        StreamList,
        TagList,
    )
    given = {word for kind in (Graph, *parts) for word in given_by(kind) if word[0].isupper()}
    # A frame is Spark's, and a part is asked for by its name on the graph.
    others = {"None", "Frame", *(each.__name__ for each in parts)}

    assert "QueryResult" in given
    assert given - others <= set(omnigraph.__all__)


def test_every_error_is_at_the_root_as_it_is_in_its_module():
    own = {name for name, each in vars(errors).items() if _is_error(each)}
    every = own | {*errors._HOMES}

    assert {"OmnigraphError", "IntegrityError", "StorageError"} <= every
    assert every <= set(omnigraph.__all__)
    for name in every:
        assert getattr(omnigraph, name) is getattr(errors, name)


def _is_error(each: object) -> bool:
    return isinstance(each, type) and issubclass(each, errors.OmnigraphError)


def test_catching_an_error_loads_no_heavy_library():
    loaded = f"[name for name in {HEAVY!r} if name in sys.modules]"
    program = f"import json, sys, omnigraph; omnigraph.OmnigraphError; print(json.dumps({loaded}))"

    assert fresh(program) == []


def test_a_star_import_gives_exactly_the_list():
    program = """
import json
before = set(globals())
from omnigraph import *
print(json.dumps(sorted(set(globals()) - before - {"before"})))
"""
    assert fresh(program) == sorted(omnigraph.__all__)


@pytest.mark.parametrize(
    "name", ["open", "init", "Graph", "OmnigraphError", "errors", "parse_schema"]
)
def test_each_name_resolves_on_its_own(name):
    program = f"import json, omnigraph; print(json.dumps(omnigraph.{name}.__name__))"

    assert fresh(program).rpartition(".")[2] == name


def test_the_package_knows_its_release():
    program = "import json, omnigraph; print(json.dumps(omnigraph.__version__))"

    assert fresh(program) == metadata.version("omnigraph")


@pytest.mark.parametrize("module", ["omnigraph", "omnigraph.errors"])
def test_importing_the_package_loads_no_heavy_library(module):
    loaded = f"[name for name in {HEAVY!r} if name in sys.modules]"

    assert fresh(f"import json, sys, {module}; print(json.dumps({loaded}))") == []


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        getattr(omnigraph, "nothing")  # noqa: B009


def test_every_module_says_what_lives_there():
    silent = [each.path for each in every_source() if not ast.get_docstring(each.tree)]

    assert silent == []
