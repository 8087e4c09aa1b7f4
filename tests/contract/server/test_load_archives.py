"""Archives of `POST calls/load`: they are decided on, and unpacked, while they arrive."""

import io
import json
import socket
import tarfile
import time
from pathlib import Path

import pytest

import omnigraph
from omnigraph.documents.archives import RequestArchive, archive_pieces, unpack_folder
from omnigraph.documents.loads import send_inputs
from omnigraph.documents.values import to_document
from omnigraph.errors import InvalidInputError
from omnigraph.load.sources import resolve
from omnigraph.schema.parser import parse_schema
from tests.support.served import serving, settings_for

RULES = """
permit(principal == Actor::"ada", action, resource);
permit(principal == Actor::"reader", action == Action::"read", resource);
permit(principal == Actor::"drafter", action in [Action::"read", Action::"load"], resource)
  when { resource is Branch && resource.name like "draft/*" };
permit(principal == Actor::"drafter", action == Action::"load", resource == Type::"Person");
"""
ADDRESS = "/graphs/world/calls/load"
SPARSE_BYTES = 3 << 30


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("archives")
    omnigraph.init(folder / "world", "node Person { name: String @key }")
    (folder / "rules.cedar").write_text(RULES)
    settings = settings_for(
        folder,
        {"world": str(folder / "world")},
        policy=folder / "rules.cedar",
        limits={"load_bytes": 5_000_000, "direct_load_bytes": 100_000, "body_bytes": 250_000},
    )
    with serving(settings) as running:
        yield running


@pytest.fixture
def ada(served):
    with client_of(served, "ada") as own:
        yield own


def client_of(served, actor):
    """A client whose bodies are archives unless they are JSON."""
    token, _ = served.tokens().create(actor)
    own = served.client(token)
    own.headers["Content-Type"] = "application/x-tar"
    return own


@pytest.fixture
def people(tmp_path):
    path = tmp_path / "people.jsonl"
    path.write_text('{"type": "Person", "data": {"name": "Ada"}}\n')
    return path


def request_of(*paths, **arguments):
    """What a client describes a load of these files by."""
    catalog = parse_schema("node Person { name: String @key }")
    described, files = send_inputs(resolve([str(path) for path in paths], catalog), Path)
    return {"arguments": {"mode": "merge", **arguments}, "inputs": described}, files


def members(*entries):
    """An archive of headers and bytes, as tarfile writes it."""
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for member, data in entries:
            archive.addfile(member, io.BytesIO(data))
    return sink.getvalue()


def plain(name, data):
    member = tarfile.TarInfo(name)
    member.size = len(data)
    return member, data


def described(people):
    request, _ = request_of(people)
    return plain("request.json", json.dumps(to_document(request)).encode())


def special(name, kind):
    member = tarfile.TarInfo(name)
    member.type = kind
    member.linkname = "/etc/passwd"
    return member, b""


def sparse(name):
    """A member of a few bytes that stands for gigabytes, by GNU's records in a PAX header."""
    data = b"1\n0\n0\n".ljust(512, b"\0")
    member = tarfile.TarInfo(name)
    member.size = len(data)
    member.pax_headers = {
        "GNU.sparse.major": "1",
        "GNU.sparse.minor": "0",
        "GNU.sparse.name": name,
        "GNU.sparse.realsize": str(SPARSE_BYTES),
    }
    return member, data


def hostile(people):
    """Archives that no client sends, by what is wrong with them."""
    request, line = described(people), people.read_bytes()
    rows = plain("0", line)
    whole = members(request, rows)
    return {
        "sparse file": members(request, sparse("0")),
        "sparse request": members(sparse("request.json"), rows),
        "symbolic link": members(request, special("0", tarfile.SYMTYPE)),
        "hard link": members(request, special("0", tarfile.LNKTYPE)),
        "device": members(request, special("0", tarfile.CHRTYPE)),
        "fifo": members(request, special("0", tarfile.FIFOTYPE)),
        "directory": members(request, special("0", tarfile.DIRTYPE)),
        "surplus file": members(request, rows, plain("1", line)),
        "surplus request": members(request, request, rows),
        "missing file": members(request),
        "too many files": members(plain("request.json", b'{"inputs": [%s0]}' % (b"0," * 100_000))),
        "other name": members(request, plain("../0", line)),
        "no request": members(rows),
        "large request": members(plain("request.json", b" " * 300_000), rows),
        "request that is a list": members(plain("request.json", b"[]"), rows),
        "request that is not JSON": members(plain("request.json", b"{"), rows),
        "cut in its request": whole[:700],
        "cut in its file": whole[: whole.index(line) + 10],
        "cut before its end": whole[: whole.index(line) + 512],
        "more behind its end": whole + whole,
        "nothing": b"",
        "not an archive": b"x" * 2_000,
    }


def test_archive_of_a_client_is_loaded(served, ada, people):
    request, files = request_of(people)
    body = b"".join(archive_pieces(request, files))
    answer = ada.post(ADDRESS, content=body)
    assert answer.status_code == 200, answer.text
    assert ada.get("/graphs/world/entities/Person/Ada").status_code == 200
    assert list(served.service.scratch.iterdir()) == []


def test_archive_that_no_client_sends_is_refused(served, ada, people):
    for what, body in hostile(people).items():
        begun = time.monotonic()
        refused = ada.post(ADDRESS, content=body)
        assert refused.status_code == 400, (what, refused.text)
        assert time.monotonic() - begun < 2, what
        assert list(served.service.scratch.iterdir()) == [], what


@pytest.mark.parametrize("size", [1, 511, 512, 70_000])
def test_archive_is_unpacked_however_its_bytes_are_cut(tmp_path, people, size):
    people.write_bytes(people.read_bytes() * 3_000)
    empty = tmp_path / "empty.jsonl"
    empty.touch()
    request, files = request_of(empty, people)
    body = b"".join(archive_pieces(request, files))[: 3_000 if size == 1 else None]
    archive = RequestArchive(tmp_path, request_bytes_max=10_000)
    for start in range(0, len(body), size):
        archive.feed(body[start : start + size])
    archive.feed(b"")
    if size > 1:
        archive.finish()
        assert [path.read_bytes() for path in archive.files] == [b"", people.read_bytes()]
    archive.close()
    assert archive.request == to_document(request)


def test_file_of_more_than_8_gib_keeps_its_size(tmp_path, people):
    member = tarfile.TarInfo("0")
    member.size = 9 << 30
    request, _ = request_of(people)
    head = b"".join(archive_pieces(request, []))[:-1024]
    archive = RequestArchive(tmp_path, request_bytes_max=10_000)
    archive.feed(head)
    archive.feed(member.tobuf(tarfile.PAX_FORMAT) + b"x" * 100_000)
    archive.close()
    assert archive.files[0].stat().st_size == 65_536


def raw_request(served, token, length):
    head = (
        f"POST {ADDRESS} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {length}\r\n"
        f"Authorization: Bearer {token}\r\nContent-Type: application/x-tar\r\n\r\n"
    )
    host, port = served.url.removeprefix("http://").split(":")
    connection = socket.create_connection((host, int(port)), timeout=5)
    connection.sendall(head.encode())
    return connection


def test_files_of_who_may_not_load_are_not_received(served, people):
    """The answer comes when the request of the archive has arrived, before any of its files."""
    token, _ = served.tokens().create("reader")
    request, _ = request_of(people)
    with raw_request(served, token, 4_000_000) as connection:
        connection.sendall(b"".join(archive_pieces(request, []))[:-1024])
        answer = b""
        while b"reader cannot load" not in answer:
            answer += connection.recv(10_000)
    assert answer.startswith(b"HTTP/1.1 403")
    assert list(served.service.scratch.iterdir()) == []


def test_load_is_decided_for_the_branch_that_its_archive_names(served, people):
    served.service.graph("world", "ada").branches.create("draft/1")
    with client_of(served, "drafter") as drafter:
        for branch, status in (("draft/1", 200), ("main", 403)):
            request, files = request_of(people, branch=branch)
            body = b"".join(archive_pieces(request, files))
            answer = drafter.post(ADDRESS, content=body)
            assert answer.status_code == status, answer.text


def test_client_that_leaves_frees_files_and_places(served, people):
    people.write_bytes(people.read_bytes() * 30_000)
    request, files = request_of(people)
    body = b"".join(archive_pieces(request, files))
    service = served.service
    connection = raw_request(served, served.token, len(body))
    connection.sendall(body[:500_000])
    wait_until(lambda: list(service.scratch.iterdir()) != [])
    assert (service.writes.inside, service.reads.inside) == (0, 0)
    connection.close()
    wait_until(lambda: list(service.scratch.iterdir()) == [])


def wait_until(condition):
    give_up = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < give_up
        time.sleep(0.01)


def test_remote_load_that_is_not_allowed_says_so(served, people):
    token, _ = served.tokens().create("reader")
    people.write_bytes(people.read_bytes() * 50_000)
    with (
        omnigraph.connect(f"{served.url}/graphs/world", token) as world,
        pytest.raises(omnigraph.NotAllowedError, match="reader cannot load"),
    ):
        world.load(people)


@pytest.mark.parametrize("entry", [sparse("0"), special("0", tarfile.SYMTYPE)])
def test_client_refuses_a_sparse_or_special_file_of_an_export(tmp_path, entry):
    with pytest.raises(InvalidInputError, match="is not a file of an export"):
        unpack_folder(io.BytesIO(members(entry)), tmp_path)
    assert list(tmp_path.iterdir()) == []
