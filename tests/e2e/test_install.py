"""The package as it is installed: from its wheel, in an environment that nobody activated."""

import json
import os
import re
from dataclasses import replace
from pathlib import Path
from textwrap import dedent
from typing import Final
from zipfile import ZipFile

import pytest

from tests.support import docs
from tests.support.environments import (
    SPARK,
    Environment,
    build_wheel,
    install_environment,
    make_environment,
)
from tests.support.sources import REPOSITORY

README: Final = REPOSITORY / "README.md"
SERVING: Final = REPOSITORY / "docs" / "serving.md"
SCHEMA: Final = "node Person { name: String @key  age: I64? }\nedge Knows: Person -> Person\n"
ROWS: Final = (
    '{"type": "Person", "data": {"name": "Ada", "age": 36}}\n'
    '{"type": "Person", "data": {"name": "Bob"}}\n'
    '{"edge": "Knows", "from": "Ada", "to": "Bob"}\n'
)
COUNT: Final = "query all() { match { $p: Person } return { count($p) as people } }"

OWN_SESSION: Final = """\
import os, warnings
warnings.simplefilter("error", FutureWarning)
# Compiled lightly: it lives for seconds.
os.environ["SPARK_SUBMIT_OPTS"] = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
from pyspark.sql import SparkSession
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
spark = builder.config("spark.sql.shuffle.partitions", "1").getOrCreate()
import omnigraph
graph = omnigraph.init("world.omni", "world.pg")
loaded = graph.load("rows.jsonl", engine="spark", index=False)
print(loaded.engine, loaded.inserted)
mine = spark.createDataFrame([("Ada",)], "name string")
# This plan runs in the user's own session.
people = graph.frame("Person", spark=spark)
print([row.age for row in mine.join(people, "name").collect()])
print(spark.conf.get("spark.sql.caseSensitive"))
"""
"""A program that makes a session of its own, loads, and joins its own rows with the graph's."""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def complete(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Environment:
    """The package with its extra `spark`."""
    return make_environment(tmp_path_factory.mktemp("complete"), wheel)


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Environment:
    """The package alone."""
    return make_environment(tmp_path_factory.mktemp("bare"), wheel, without=SPARK)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A directory with a schema and rows."""
    (tmp_path / "world.pg").write_text(SCHEMA)
    (tmp_path / "rows.jsonl").write_text(ROWS)
    return tmp_path


def told(environment: Environment, folder: Path, program: str) -> list[str]:
    """What a program prints that ends well."""
    ran = environment.run("-c", dedent(program), cwd=folder)
    assert ran.returncode == 0, ran.stderr[-3000:]
    return ran.stdout.splitlines()


def command(environment: Environment, folder: Path, *arguments: str) -> tuple[int, str, str]:
    ran = environment.run("-m", "omnigraph", *arguments, cwd=folder)
    assert "Traceback" not in ran.stderr, ran.stderr
    return ran.returncode, ran.stdout, ran.stderr


def test_the_python_on_the_path_has_no_omnigraph(complete: Environment, folder: Path) -> None:
    program = """
        import shutil, subprocess
        code = "import importlib.util as u; print([u.find_spec('omnigraph'), u.find_spec('lance')])"
        print(subprocess.run(["python3", "-c", code], capture_output=True, text=True).stdout)
        import omnigraph; print(omnigraph.__file__)
    """
    other, _, ours = told(complete, folder, program)
    assert other == "[None, None]"
    assert ours.startswith(str(complete.python.parents[1]))


def test_the_wheel_has_the_web_app(wheel: Path) -> None:
    if not (REPOSITORY / "src/omnigraph/server/built_app/index.html").is_file():
        pytest.skip("the web app was not built (make web)")
    names = ZipFile(wheel).namelist()
    assert "omnigraph/server/built_app/index.html" in names
    assert any(re.fullmatch(r"omnigraph/server/built_app/assets/.*\.js", name) for name in names)
    assert not [name for name in names if "node_modules" in name or name.startswith("web/")]


@pytest.mark.parametrize("kind", [pytest.param("complete", marks=pytest.mark.soak), "bare"])
def test_the_first_session_of_the_readme_runs(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    examples = docs.run_examples(README, tmp_path, environment=request.getfixturevalue(kind))
    wrong = [each for each in examples if not each.is_right]
    assert not wrong, "\n\n".join(map(str, wrong))


@pytest.mark.soak
def test_a_session_that_the_user_made_here_loads_and_mixes(
    complete: Environment, folder: Path
) -> None:
    assert told(complete, folder, OWN_SESSION) == ["spark 3", "[36]", "false"]


def test_what_runs_here_needs_no_extra(bare: Environment, folder: Path) -> None:
    program = """
        import importlib.util as u, sys
        import omnigraph
        print([u.find_spec(name) for name in ("pyspark", "pandas")])
        graph = omnigraph.init("world.omni", "world.pg")
        print(graph.load("rows.jsonl").engine)
        draft = graph.branches.create("draft")
        draft.mutate('query q() { insert Person { name: "Cy" } }')
        graph.mutate('query q() { update Person set { age: 8 } where name = "Bob" }')
        print(len(list(graph.diff("main", "draft").rows())), graph.merge("draft").outcome)
        print(graph.query("%s").rows(), graph.check().is_sound)
        graph.cleanup()
        print(graph.export("out.jsonl").engine, graph.ensure_indices().engine)
        graph.load("out.jsonl", mode="merge")
    """
    assert told(bare, folder, program.replace("%s", COUNT)) == [
        "[None, None]",
        "local",
        "2 merged",
        "[{'people': 3}] True",
        "local local",
    ]


CALLS: Final = (
    "graph.load('rows.jsonl', engine='spark')",
    f"graph.query({COUNT!r}, engine='spark')",
    f"graph.query({COUNT!r}).frame()",
    "graph.frame('Person')",
    "graph.vertices()",
    "graph.edges()",
    "graph.diff('main', 'main', engine='spark')",
    "graph.merge('draft', engine='spark')",
    "graph.export('out', engine='spark')",
    "graph.ensure_indices(engine='spark')",
    "graph.check(engine='spark')",
)
"""Whatever needs Spark."""


def test_what_needs_the_extra_says_how_to_install_it(bare: Environment, folder: Path) -> None:
    program = f"""
        import omnigraph
        graph = omnigraph.init("world.omni", "world.pg")
        graph.branches.create("draft").mutate('query q() {{ insert Person {{ name: "Cy" }} }}')
        for call in {CALLS!r}:
            try:
                eval(call)
                print(call, "went well")
            except omnigraph.errors.InvalidInputError as error:
                print(error.code, error)
    """
    lines = told(bare, folder, program)
    assert len(lines) == len(CALLS)
    for call, line in zip(CALLS, lines, strict=True):
        expected = "engine_unavailable Spark needs pyspark and pandas, which are not installed"
        assert line.startswith(expected), call
        assert "pip install 'omnigraph[spark]'" in line, call


def test_pandas_says_how_to_install_it(bare: Environment, folder: Path) -> None:
    program = """
        import omnigraph
        graph = omnigraph.init("world.omni", "world.pg")
        try:
            graph.query("%s").pandas()
        except omnigraph.errors.InvalidInputError as error:
            print(error.code, error)
    """
    [line] = told(bare, folder, program.replace("%s", COUNT))
    assert line.startswith("not_installed a pandas DataFrame needs pandas, which is not installed")
    assert "pip install 'omnigraph[spark]'" in line


def test_what_is_too_large_runs_here_and_says_why(bare: Environment, folder: Path) -> None:
    program = """
        import omnigraph
        from omnigraph.engine import choose
        choose.LOCAL_BYTES_MAX = 0
        graph = omnigraph.init("world.omni", "world.pg")
        graph.load("rows.jsonl")
        found = graph.query("%s")
        print(found.engine, found.rows(), found.why)
    """
    [line] = told(bare, folder, program.replace("%s", COUNT))
    assert line.startswith("local [{'people': 2}] tables of ")
    assert line.endswith("Spark is not installed (pip install 'omnigraph[spark]')")


def test_commands_say_how_to_install_the_extra(bare: Environment, folder: Path) -> None:
    assert command(bare, folder, "init", "world.omni", "--schema", "world.pg")[0] == 0
    for arguments in (
        ("load", "--data", "rows.jsonl", "--mode", "append", "--engine", "spark"),
        ("query", "-e", COUNT, "--engine", "spark"),
        ("check", "--engine", "spark"),
        ("export", "out", "--engine", "spark"),
        ("index", "--engine", "spark"),
        ("diff", "main", "main", "--engine", "spark"),
    ):
        code, out, err = command(bare, folder, *arguments, "--store", "world.omni")
        assert (code, out) == (3, ""), arguments
        assert "pip install 'omnigraph[spark]'" in " ".join(err.split()), arguments


def test_the_demo_runs_without_the_extra(bare: Environment, folder: Path) -> None:
    code, _, err = command(bare, folder, "demo", "--rows", "200", "--directory", "demo")
    assert code == 0, err
    assert "pip install 'omnigraph[spark]'" in " ".join(err.split())


def test_the_package_takes_ranges_and_keeps_the_largest_in_an_extra(
    complete: Environment, folder: Path
) -> None:
    program = """
        import json
        from importlib.metadata import requires
        print(json.dumps(requires("omnigraph")))
    """
    found = json.loads(told(complete, folder, program)[0])
    assert not [each for each in found if "==" in each.partition(";")[0]]
    assert all("<" in each and ">=" in each for each in found)
    always = [each for each in found if "extra ==" not in each]
    assert not [each for each in always if each.startswith(("pandas", "pyspark"))]
    of_spark = [each for each in found if "extra == 'spark'" in each.replace('"', "'")]
    assert [each.partition("<")[0].rstrip(">=,0123456789.") for each in sorted(of_spark)] == [
        "pandas",
        "pyspark",
    ]


@pytest.mark.soak
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("extras", ["", "[spark]"], ids=["bare", "complete"])
def test_what_the_package_index_has_for_the_package_is_enough(
    tmp_path: Path, folder: Path, wheel: Path, extras: str
) -> None:
    installed = install_environment(tmp_path / "installed", wheel, extras=extras)
    session = tmp_path / "session"
    session.mkdir()
    examples = docs.run_examples(README, session, environment=installed)
    assert [str(each) for each in examples if not each.is_right] == []
    has = "import importlib.util as u; print([u.find_spec(name) for name in ('pyspark', 'pandas')])"
    if extras:
        assert told(installed, folder, OWN_SESSION) == ["spark 3", "[36]", "false"]
    else:
        assert told(installed, folder, has) == ["[None, None]"]


@pytest.mark.soak
@pytest.mark.timeout(1_800)
def test_a_newcomer_serves_a_graph_and_asks_it(tmp_path: Path, wheel: Path) -> None:
    installed = install_environment(tmp_path / "installed", wheel, extras="[server]")
    # As after `activate`: the page calls Python, too.
    path = os.pathsep.join([str(installed.python.parent), os.environ["PATH"]])
    session = tmp_path / "session"
    session.mkdir()
    examples = docs.run_examples(SERVING, session, environment=replace(installed, path=path))

    assert [str(each) for each in examples if not each.is_right] == []
