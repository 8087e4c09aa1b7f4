"""The object stores under test."""

from pathlib import Path

import pytest
from obstore.store import LocalStore, MemoryStore, ObjectStore, from_url


@pytest.fixture
def local(tmp_path: Path) -> LocalStore:
    """An empty store on local disk."""
    return LocalStore(tmp_path / "objects", mkdir=True)


@pytest.fixture
def memory() -> MemoryStore:
    """An empty store in memory."""
    return MemoryStore()


@pytest.fixture
def s3(s3_bucket: str) -> ObjectStore:
    """An empty store under a prefix of a bucket."""
    return from_url(f"s3://{s3_bucket}/objects")


@pytest.fixture(params=["local", "memory", "s3"])
def store(request: pytest.FixtureRequest) -> ObjectStore:
    """Each of the three in turn."""
    return request.getfixturevalue(request.param)  # type: ignore[no-any-return]


@pytest.fixture(params=["memory", "s3"])
def conditional(request: pytest.FixtureRequest) -> ObjectStore:
    """Each store that can update by etag."""
    return request.getfixturevalue(request.param)  # type: ignore[no-any-return]


@pytest.fixture(params=["local", "memory"])
def renaming(request: pytest.FixtureRequest) -> ObjectStore:
    """Each store that can copy and rename to a free name only."""
    return request.getfixturevalue(request.param)  # type: ignore[no-any-return]
