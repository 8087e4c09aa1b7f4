from __future__ import annotations

import subprocess
import sys

import pyarrow as pa
import pytest

from omnigraph.schema.arrow import is_blob, table_schema
from omnigraph.schema.parser import parse_schema

CATALOG = parse_schema("""
node All {
  a: String  b: Bool?  c: I32  d: I64  e: U32  f: U64  g: F32  h: F64  i: Date  j: DateTime
  k: enum(x, y)  l: [Date]  m: Vector(3)?  n: Blob?  o: [Blob]
}
edge E: All -> All { since: Date? }
""")


def field(name, type_, *, nullable=False):
    return pa.field(name, type_, nullable=nullable)


def test_each_type_has_its_storage():
    assert table_schema(CATALOG.node_type("All")).equals(
        pa.schema(
            [
                field("id", pa.utf8()),
                field("a", pa.utf8()),
                field("b", pa.bool_(), nullable=True),
                field("c", pa.int32()),
                field("d", pa.int64()),
                field("e", pa.uint32()),
                field("f", pa.uint64()),
                field("g", pa.float32()),
                field("h", pa.float64()),
                field("i", pa.date32()),
                field("j", pa.timestamp("us", "UTC")),
                field("k", pa.utf8()),
                field("l", pa.list_(field("item", pa.date32()))),
                field("m", pa.list_(pa.float32(), 3), nullable=True),
                field("n", pa.large_binary(), nullable=True),
                field("o", pa.list_(field("item", pa.large_binary()))),
            ]
        )
    )


def test_an_edge_has_its_endpoints():
    assert table_schema(CATALOG.edge_type("E")).names == ["id", "src", "dst", "since"]


@pytest.mark.parametrize(("name", "expected"), [("n", True), ("o", True), ("a", False)])
def test_blobs_are_marked(name, expected):
    assert is_blob(table_schema(CATALOG.node_type("All")).field(name)) is expected


def test_reading_a_schema_needs_no_arrow_and_a_catalog_needs_no_parser():
    program = (
        "import sys, omnigraph.schema.codec; assert 'lark' not in sys.modules;"
        "import omnigraph.schema.parser; assert 'pyarrow' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
