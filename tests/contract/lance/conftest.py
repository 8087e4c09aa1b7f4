"""Where the tables under test live."""

from pathlib import Path

import pytest


@pytest.fixture
def uri(tmp_path: Path) -> str:
    """A place on local disk where no table is yet."""
    return str(tmp_path / "table")


@pytest.fixture(params=["local", "s3"])
def anywhere(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A place where no table is yet: on local disk, then on S3."""
    if request.param == "s3":
        return f"s3://{request.getfixturevalue('s3_bucket')}/table"
    return str(tmp_path / "table")
