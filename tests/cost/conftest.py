"""An S3 look-alike for all cost tests, that counts what it is asked."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import omnigraph
from omnigraph.graph import Graph
from tests.support import s3
from tests.support.counting import Counted, Upload, counting_server, put_files


@pytest.fixture(scope="session")
def counting() -> Iterator[tuple[Counted, s3.S3Server]]:
    with counting_server() as running:
        yield running


@pytest.fixture
def asked(counting: tuple[Counted, s3.S3Server], monkeypatch: pytest.MonkeyPatch) -> Counted:
    counted, server = counting
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    return counted


@pytest.fixture
def root(asked: Counted, counting: tuple[Counted, s3.S3Server]) -> str:
    """A place for a graph in a bucket of its own."""
    bucket = counting[1].create_bucket()
    asked.take()
    return f"s3://{bucket}/graph"


@pytest.fixture
def upload(root: str) -> Upload:
    def run(folder: Path) -> Graph:
        put_files(folder, root)
        return omnigraph.open(root)

    return run
