"""The places a store may be, so that every promise is checked in each of them."""

from pathlib import Path
from typing import Final

import pytest

from omnigraph.storage.store import Store
from omnigraph.storage.tables import Table
from tests.support import tables

PLACES: Final = ("path", "file-uri", "odd-path", "s3")


@pytest.fixture(params=PLACES)
def uri(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A URI below which nothing is yet, spelt in each of the ways people spell one."""
    match request.param:
        case "path":
            return str(tmp_path / "graph")
        case "file-uri":
            return (tmp_path / "graph of files").as_uri()
        case "odd-path":
            return str(tmp_path / "wéird 100% [a] #1" / "a%20b 日本")
        case _:
            return f"s3://{request.getfixturevalue('s3_bucket')}/graphs/one"


@pytest.fixture
def store(uri: str) -> Store:
    """A store with nothing in it."""
    return Store.open(uri)


@pytest.fixture
def elsewhere(uri: str) -> Store:
    """The same place, opened by somebody who shares no handle and no cache."""
    return Store.open(uri)


@pytest.fixture
def local(tmp_path: Path) -> Store:
    """A store on a plain path, for promises that are the same in every place."""
    return Store.open(tmp_path / "local graph")


@pytest.fixture
def table(store: Store) -> Table:
    """Version 1 of a table that holds a, b and c in one fragment."""
    return tables.create(store, "abc")
