"""What a command imports from nothing to its end, and how its process ends."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from omnigraph import graph

SCHEMA: Final = "node Person { name: String @key  age: I32? }"
QUERY: Final = "query q($n: String) { match { $p: Person {name: $n} } return { $p.name } }"
INSERT: Final = 'query q() { insert Person { name: "Bob" } }'

HEAVY: Final = (
    *("pandas", "pyspark", "duckdb", "sqlglot", "lark", "lance", "rich.console"),
    *("fastapi", "starlette", "uvicorn", "pydantic", "jwt", "prometheus_client", "httpx"),
)


@pytest.fixture(scope="module")
def template(tmp_path_factory) -> Path:
    folder: Path = tmp_path_factory.mktemp("start") / "graph"
    made = graph.init(folder, SCHEMA)
    made.mutate('query q() { insert Person { name: "Ada" } }')
    made.branches.create("other")
    made.at(branch="other").mutate('query q() { insert Person { name: "Eve" } }')
    return folder


@pytest.fixture
def store(template: Path, tmp_path: Path) -> str:
    return str(shutil.copytree(template, tmp_path / "graph"))


def run_python(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def loaded_by(*arguments: str) -> set[str]:
    """The heavy libraries that a command has imported when it ends."""
    program = (
        "import atexit, json, sys\n"
        "from omnigraph.cli import main, process\n"
        f"loaded = lambda: [name for name in {HEAVY!r} if name in sys.modules]\n"
        "say = lambda: print(json.dumps(loaded()), file=sys.stderr)\n"
        "process.leave_memory()\n"
        "atexit.register(say)\n"
        "process.leave_memory = lambda: None\n"
        "main.run()\n"
    )
    done = run_python(program, *arguments)
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stderr.splitlines()[-1]))


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--help"], set()),
        (["query", "--help"], set()),
        (["query", "-e", QUERY, "--param", "n=Ada"], {"sqlglot", "lark", "lance"}),
        (["mutate", "-e", INSERT], {"sqlglot", "lark", "lance"}),
        (["branch", "create", "new"], {"lance"}),
        (["branch", "merge", "other"], {"sqlglot", "lance"}),
        (["snapshot"], {"lance"}),
    ],
    ids=lambda each: " ".join(each[:2]) if isinstance(each, list) else "",
)
def test_a_command_imports_what_it_uses(store, arguments, expected, monkeypatch):
    monkeypatch.setenv("OMNIGRAPH_STORE", store)

    assert loaded_by(*arguments) == expected


def test_a_query_that_computes_imports_the_engine(store):
    count = "query q() { match { $p: Person } return { count($p) as n } }"

    assert "duckdb" in loaded_by("query", "--store", store, "-e", count)


def test_pandas_is_hidden_until_spark_is_looked_for():
    program = """
import sys
from importlib.util import find_spec
from omnigraph.cli.process import defer_pandas
defer_pandas()
import pyarrow as pa
pa.array([1, 2])
assert "pandas" not in sys.modules
try:
    import pandas
except ModuleNotFoundError as absent:
    print(absent.name)
find_spec("pyspark")
import pandas
# Arrow recognises values of pandas again: NaN in a series is null.
print(pa.array(pandas.Series([1.0, float("nan")])).null_count)
print(pa.Table.from_pandas(pandas.DataFrame({"a": [1]})).to_pandas().a.tolist())
"""
    done = run_python(program)

    assert (done.stdout, done.stderr) == ("pandas\n1\n[1]\n", "")


def test_pandas_that_is_imported_stays_so():
    program = """
import pandas, sys
from omnigraph.cli.process import defer_pandas
before = list(sys.meta_path)
defer_pandas()
print(sys.meta_path == before)
"""
    assert run_python(program).stdout == "True\n"


def test_a_process_ends_after_its_threads_its_callbacks_and_its_output():
    program = """
import atexit, sys, threading, time
from concurrent.futures import ThreadPoolExecutor
from omnigraph.cli.process import end, leave_memory
leave_memory()
atexit.register(lambda: print("callback"))
pool = ThreadPoolExecutor(1)
pool.submit(lambda: (time.sleep(0.1), print("pool")))
threading.Thread(target=lambda: (time.sleep(0.3), print("thread"))).start()
sys.stdout.write("first\\n")
end(7)
"""
    done = run_python(program)

    assert (done.returncode, done.stdout, done.stderr) == (
        7,
        "first\npool\nthread\ncallback\n",
        "",
    )


def test_a_process_that_is_interrupted_as_it_ends_says_so_by_its_code():
    program = """
import os, signal, threading, time
from omnigraph.cli.process import end, leave_memory
leave_memory()
def interrupt():
    time.sleep(0.2)
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(30)
threading.Thread(target=interrupt).start()
end(0)
"""
    done = run_python(program)

    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
