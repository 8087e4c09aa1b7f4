"""Tables of lakes, as their own packages read them: Delta by deltalake, Iceberg by pyiceberg.

The packages are those of the benchmarks' peers, which have an environment of their own.
"""

import subprocess
import sys
from pathlib import Path
from textwrap import dedent, indent

import pytest

import omnigraph
from tests.support.sources import REPOSITORY
from tests.support.streams import names_in

pytestmark = pytest.mark.soak

SCHEMA = "node Person { name: String @key  age: I64 }"

DELTA = """
    import deltalake
    deltalake.write_deltalake("people", pa.table({"name": ["Ada", "Bob"], "age": [36, 7]}))
    deltalake.write_deltalake("people", pa.table({"name": ["Cyd"], "age": [41]}), mode="append")
    rows = deltalake.DeltaTable("people").to_pyarrow_table()
"""
ICEBERG = """
    from pyiceberg.catalog.memory import InMemoryCatalog
    catalog = InMemoryCatalog("lake", warehouse=f"file://{os.getcwd()}/warehouse")
    catalog.create_namespace("db")
    people = pa.table({"name": ["Ada", "Bob", "Cyd"], "age": [36, 7, 41]})
    catalog.create_table("db.people", people.schema).append(people)
    rows = catalog.load_table("db.people").scan().to_arrow()
"""
PROGRAM = """
import os, sys
sys.path.append(sys.argv[1])
import pyarrow as pa
import omnigraph
if True:
{read}
graph = omnigraph.open(sys.argv[2])
print(graph.load({{"Person": rows}}, mode="merge").inserted)
"""


@pytest.mark.parametrize(
    ("package", "read"), [("deltalake", DELTA), ("pyiceberg", ICEBERG)], ids=["Delta", "Iceberg"]
)
def test_a_table_of_a_lake_is_loaded(tmp_path: Path, package: str, read: str) -> None:
    found = list(REPOSITORY.glob(f".venv-peers/lib/python*/site-packages/{package}"))
    if not found:
        pytest.skip(f"{package} is not here: python -m benchmarks.peers.install")
    graph = omnigraph.init(tmp_path / "graph.omni", SCHEMA)
    program = PROGRAM.format(read=indent(dedent(read).strip(), "    "))

    ran = subprocess.run(
        [sys.executable, "-c", program, str(found[0].parent), graph.uri],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert ran.stdout == "3\n", ran.stderr
    assert names_in(graph) == dict.fromkeys(["Ada", "Bob", "Cyd"], 1)
