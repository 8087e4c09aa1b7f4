"""The engines that the one suite of rules runs on."""

import zlib
from pathlib import Path
from typing import Final

import pytest

from omnigraph.choices import EngineName
from omnigraph.engine.local.execute import LocalEngine
from omnigraph.engine.protocol import Engine
from tests.contract.integrity.builders import World, world

ENGINES: Final = (EngineName.LOCAL, EngineName.SPARK)


@pytest.fixture(scope="session", params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Engine:
    """Every engine there is, one after the other."""
    if request.param is EngineName.LOCAL:
        return LocalEngine()
    # Imported here: a run of the local engine must not pay for Spark.
    from omnigraph.engine.spark.execute import SparkEngine

    return SparkEngine(request.getfixturevalue("spark"))


@pytest.fixture
def place(tmp_path: Path, engine: Engine) -> World:
    """A place for graphs, and each engine in turn."""
    return world(tmp_path / "graph", engine)


@pytest.fixture
def here(tmp_path: Path) -> World:
    """A place for graphs and the local engine, for promises that no engine can change."""
    return world(tmp_path / "graph", LocalEngine())


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave most of the cases on Spark to soak, since each costs it a second or more.

    By the case's name, so that a new one moves no other.
    """
    for item in items:
        name = item.name
        is_case = name.startswith("test_a_delta_breaks_exactly_these_rules[")
        if is_case and "spark" in name and zlib.crc32(name.encode()) % 3:
            item.add_marker(pytest.mark.soak)
