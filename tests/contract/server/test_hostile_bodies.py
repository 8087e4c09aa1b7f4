"""Damaged bodies of every content type: each is refused with its place, and nothing breaks.

A body is made as a client makes it, and then spoiled: cut, overwritten, repeated, or given what
parsers stumble over. `make soak` tries many more.
"""

import gzip
import io
import json
from collections.abc import Callable
from typing import Any, Final

import fastavro
import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from pyarrow import orc

import omnigraph
from omnigraph.documents.archives import archive_pieces
from omnigraph.documents.loads import InputKind, SentInput
from omnigraph.documents.operations import OPERATIONS
from omnigraph.documents.values import to_document
from omnigraph.formats.compression import Compression
from omnigraph.lang.source import Source
from omnigraph.load.column_maps import ColumnMap
from omnigraph.load.dialects import CsvDialect
from omnigraph.load.routes import ByColumn
from omnigraph.load.sources import Form
from tests.contract.server.conftest import SCHEMA
from tests.contract.server.test_http import problem
from tests.support.served import serving, settings_for

# Arrow decodes the text of a CSV row that it refuses before it calls us, and prints its failure.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

QUERY = "query q($n: String) { match { $p: Person  $p.name = $n } return { $p.name, $p.age } }"
TABLE = pa.table(
    {"name": ["Ada", "Bob", "Cyd"] * 5, "age": [1, None, 3] * 5, "score": [0.5, 1.5, None] * 5}
)
LINES = b'{"type": "Person", "data": {"name": "Ada", "age": 36}}\n' * 3
ROWS = b'{"name": "Ada", "age": 36}\n{"name": "Bob", "picture": {"$": "bytes", "value": "Yg=="}}\n'
CSV = b'name,age,score\n"Ada",36,0.5\nBob,,\n"C\nyd",1,2\n'


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A server that answers every load here at once."""
    folder = tmp_path_factory.mktemp("hostile")
    omnigraph.init(folder / "world", SCHEMA)
    settings = settings_for(folder, {"world": str(folder / "world")})
    with serving(settings) as running:
        yield running


def written(write: Callable[[Any], object]) -> bytes:
    sink = io.BytesIO()
    write(sink)
    return sink.getvalue()


def arrow_stream(sink: Any) -> None:
    with pa.ipc.new_stream(sink, TABLE.schema) as writer:
        writer.write_table(TABLE, max_chunksize=4)


def arrow_file(sink: Any) -> None:
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_file(sink, TABLE.schema, options=options) as writer:
        writer.write_table(TABLE, max_chunksize=4)


def avro(codec: str) -> bytes:
    fields = [{"name": "name", "type": "string"}, {"name": "age", "type": ["null", "long"]}]
    schema = {"type": "record", "name": "Person", "fields": fields}
    rows = [{"name": "Ada", "age": 1}, {"name": "Bob", "age": None}]
    return written(lambda sink: fastavro.writer(sink, schema, rows, codec=codec))


AVRO_CODECS: Final = ("null", "deflate", "snappy", "zstandard", "bzip2", "xz")
FILES: Final = {
    "stream": written(arrow_stream),
    "file": written(arrow_file),
    "parquet": written(lambda sink: pq.write_table(TABLE, sink)),
    "orc": written(lambda sink: orc.write_table(TABLE, sink)),
    **{codec: avro(codec) for codec in AVRO_CODECS},
}
NASTY: Final = [
    b"[" * 100_000,
    b'{"a":' * 5_000,
    b"9" * 5_000,
    b"-1e999",
    b"NaN",
    b'"\\ud800"',
    b"\xff\xfe",
    b"\x00",
    b'"',
    b"\n",
    b"\r",
    b"null",
    b"[]",
    b"\x80\x00\x00\x00",
    b"\xff\xff\xff\x7f",
    b"\x00" * 600,
]


@st.composite
def spoiled(draw: Any, body: bytes) -> bytes:
    """A body with some of it cut off, overwritten, repeated, or in the wrong place."""
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(body)))
        end = min(len(body), start + draw(st.integers(0, 40)))
        match draw(st.sampled_from(["cut", "drop", "repeat", "write", "insert", "flip"])):
            case "cut":
                body = body[:start]
            case "drop":
                body = body[:start] + body[end:]
            case "repeat":
                body = body[:end] + body[start:]
            case "write":
                junk = draw(st.binary(min_size=1, max_size=8))
                body = body[:start] + junk + body[start + len(junk) :]
            case "insert":
                body = body[:start] + draw(st.sampled_from(NASTY)) + body[start:]
            case _:
                bit = 1 << draw(st.integers(0, 7))
                body = (
                    body[:start]
                    + bytes(byte ^ bit for byte in body[start:][:1])
                    + body[start + 1 :]
                )
    return body


def sent(kind: InputKind, **more: Any) -> SentInput:
    return SentInput(kind, "rows", **more)


def file_of(form: Form, compression: Compression | None = None) -> SentInput:
    of = None if form is Form.LINES else "Person"
    more = {"columns": ColumnMap(), "dialect": CsvDialect(), "compression": compression}
    return sent(InputKind.FILE, of=of, form=form, **more)


INPUTS: Final = [
    (sent(InputKind.ROWS, of="Person"), ROWS),
    (sent(InputKind.ROWS, of=ByColumn("kind")), b'{"kind": "Person", "name": "Ada"}\n'),
    (sent(InputKind.ARROW, of="Person"), FILES["stream"]),
    (sent(InputKind.STREAM), LINES),
    (sent(InputKind.STREAM), gzip.compress(LINES)),
    (file_of(Form.LINES), LINES),
    (file_of(Form.LINES, Compression.GZIP), gzip.compress(LINES)),
    (file_of(Form.LINES, Compression.ZSTD), zstandard.compress(LINES)),
    (file_of(Form.CSV), CSV),
    (file_of(Form.PARQUET), FILES["parquet"]),
    (file_of(Form.ORC), FILES["orc"]),
    *((file_of(Form.AVRO), FILES[codec]) for codec in AVRO_CODECS),
]
BODIES: Final = [
    ("application/x-ndjson", None, LINES),
    ("application/x-ndjson", "gzip", gzip.compress(LINES)),
    ("application/x-ndjson", "zstd", zstandard.compress(LINES)),
    ("application/json", None, LINES),
    ("text/csv", None, CSV),
    ("application/vnd.apache.parquet", None, FILES["parquet"]),
    ("application/vnd.apache.arrow.file", None, FILES["file"]),
    ("application/vnd.apache.arrow.file", None, FILES["stream"]),
    ("application/vnd.apache.arrow.stream", None, FILES["stream"]),
]


def archive(tmp: Any, description: object, data: bytes) -> bytes:
    path = tmp / "rows"
    path.write_bytes(data)
    request = {"arguments": {"mode": "merge"}, "inputs": [description]}
    return b"".join(archive_pieces(request, [path]))


def fuzzed(function: Any) -> Any:
    """A test that runs with as many examples as the profile has."""
    checks = list(HealthCheck)
    return hypothesis_settings(deadline=None, suppress_health_check=checks)(function)


def answered(client: httpx.Client, address: str, body: bytes, **headers: str) -> httpx.Response:
    """The answer to a body: no failure of the server, and the connection is kept."""
    answer = client.post(f"/graphs/world/{address}", content=body, headers=headers)
    about = (address, headers, body[:2_000], answer.text)
    assert answer.status_code < 500, about
    assert answer.headers.get("connection") != "close", about
    if answer.is_error:
        problem(answer, answer.status_code, answer.json()["code"])
    return answer


@fuzzed
@given(case=st.sampled_from(BODIES), data=st.data())
def test_damaged_body_of_a_load_is_refused(client, case, data):
    kind, encoding, body = case
    headers = {"Content-Type": kind}
    if encoding is not None:
        headers["Content-Encoding"] = encoding
    address = "load?mode=merge" + ("" if "json" in kind else "&type=Person")
    answered(client, address, data.draw(spoiled(body)), **headers)


@fuzzed
@given(case=st.sampled_from(INPUTS), data=st.data())
def test_damaged_input_of_a_client_is_refused(client, tmp_path_factory, case, data):
    description, rows = case
    tmp = tmp_path_factory.getbasetemp()
    body = archive(tmp, description, data.draw(spoiled(rows)))
    answered(client, "calls/load", body, **{"Content-Type": "application/x-tar"})


@fuzzed
@given(case=st.sampled_from(INPUTS), data=st.data())
def test_damaged_archive_of_a_client_is_refused(client, tmp_path_factory, case, data):
    body = archive(tmp_path_factory.getbasetemp(), *case)
    body = data.draw(spoiled(body))
    answered(client, "calls/load", body, **{"Content-Type": "application/x-tar"})


JSON_BODIES: Final = {
    "query": {"query": QUERY, "params": {"n": "Ada"}},
    "mutate": {"query": "query q($n: String) { insert Person { name: $n } }", "params": {"n": "x"}},
    "merge": {"source": "main", "into": "main", "dry_run": True},
    "schema/plan": {"schema": "node Person { name: String @key }"},
    "proposals": {"source": "main", "title": "none"},
    "queries": {"query": QUERY},
    "calls/query": to_document({"arguments": {"source": Source("q.gq", QUERY)}}),
}


@fuzzed
@given(case=st.sampled_from(sorted(JSON_BODIES.items())), data=st.data())
def test_damaged_json_is_refused(client, case, data):
    address, document = case
    body = data.draw(spoiled(json.dumps(document).encode()))
    answered(client, address, body, **{"Content-Type": "application/json"})


PLAIN: Final[st.SearchStrategy[Any]] = st.sampled_from(
    [None, True, 0, -1, 2**70, 1.5, "", "main", "x" * 300, [], {}, [None], {"a": {}}, [[]]]
)
TAGGED: Final = st.builds(
    lambda name, value, field: {"$": name, "value": value, "items": value, field: value},
    st.sampled_from(
        ["tuple", "dict", "bytes", "date", "decimal", "Source", "Target", "Commit", "BranchName"]
    ),
    PLAIN,
    st.sampled_from(["name", "text", "branch", "commit"]),
)
SOURCES: Final = st.sampled_from([to_document(Source("q.gq", QUERY)), to_document(Source("a", ""))])
VALUES: Final = st.one_of(PLAIN, TAGGED, SOURCES)
NAMES: Final = (
    *("source", "params", "name", "branch", "commit", "engine", "into", "resolve", "schema"),
    *("before", "after", "types", "ops", "limit", "type_name", "id", "at", "number", "key"),
    *("value", "text", "title", "wait", "keep", "older_than", "mode", "filter", "dry_run"),
)


@fuzzed
@given(
    name=st.sampled_from(sorted(OPERATIONS)),
    arguments=st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=4),
    target=st.one_of(st.none(), VALUES),
)
def test_argument_of_a_wrong_type_is_refused(client, name, arguments, target):
    document = {"arguments": arguments, "target": target}
    body = json.dumps(document).encode()
    answered(client, f"calls/{name}", body, **{"Content-Type": "application/json"})


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"{x\n", "it is not JSON: Expecting property name enclosed in double quotes, column 2"),
        (b"[" * 100_000, "it is nested too deeply"),
        (b'{"name": ' + b"9" * 5_000 + b"}", "it has a number with too many digits"),
        (b'{"name": "\xff"}', "it is not UTF-8: byte 11"),
        (b"3\n", "it is not an object"),
    ],
)
def test_refusal_says_which_row_is_damaged(client, tmp_path, line, why):
    body = archive(tmp_path, sent(InputKind.ROWS, of="Person"), ROWS + line)
    answer = answered(client, "calls/load", body, **{"Content-Type": "application/x-tar"})
    assert problem(answer, 400, "invalid_input")["detail"] == f"rows:3: {why}"


@pytest.mark.parametrize("codec", AVRO_CODECS[1:])
def test_refusal_says_that_a_block_of_avro_is_damaged(client, tmp_path, codec):
    body = FILES[codec]
    # The sync marker of 16 bytes is behind the block.
    damaged = body[:-22] + bytes(byte ^ 0xFF for byte in body[-22:-16]) + body[-16:]
    sent_body = archive(tmp_path, file_of(Form.AVRO), damaged)
    answer = answered(client, "calls/load", sent_body, **{"Content-Type": "application/x-tar"})
    assert (
        "rows cannot be read, at row 1 or after" in problem(answer, 400, "invalid_input")["detail"]
    )


def test_refusal_says_that_the_schema_of_avro_is_damaged(client, tmp_path):
    damaged = FILES["null"].replace(b'"type": "string"', b'"tope": "string"')
    body = archive(tmp_path, file_of(Form.AVRO), damaged)
    answer = answered(client, "calls/load", body, **{"Content-Type": "application/x-tar"})
    assert "rows cannot be read" in problem(answer, 400, "invalid_input")["detail"]


def test_refusal_says_which_record_batch_is_damaged(client, tmp_path):
    damaged = FILES["stream"][:-200]
    body = archive(tmp_path, sent(InputKind.ARROW, of="Person"), damaged)
    answer = answered(client, "calls/load", body, **{"Content-Type": "application/x-tar"})
    assert problem(answer, 400, "invalid_input")["detail"].startswith("record batch 4 of rows")
