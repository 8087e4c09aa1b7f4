"""Azure's object store, as its emulator has it: exports are whole there, and load again.

Azurite is installed by `make azurite`, or named by OMNIGRAPH_TEST_AZURITE.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from omnigraph.errors import ErrorCode, NotFoundError
from tests.contract.export.graphs import exported, small_graph
from tests.contract.export.stores import check_exports, check_lists
from tests.support.azurite import ACCOUNT, AzuriteServer, find_azurite, run_azurite
from tests.support.connect import require_classic

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def server() -> Iterator[AzuriteServer]:
    program = find_azurite()
    if program is None:
        pytest.skip("Azurite is not here: make azurite")
    with run_azurite(program) as running:
        yield running


@pytest.fixture
def container(server: AzuriteServer, monkeypatch: pytest.MonkeyPatch) -> str:
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    return server.create_container()


@pytest.mark.parametrize("form", ["az://{}", f"abfss://{{}}@{ACCOUNT}.dfs.core.windows.net"])
def test_an_export_is_whole_and_loads_again(container, tmp_path, form):
    check_exports(f"{form.format(container)}/exports", tmp_path, "local")


def test_workers_write_and_read_on_spark(container, tmp_path, server, spark, monkeypatch):
    require_classic("its workers have the environment of their server")
    for name, value in server.environment.items():
        monkeypatch.setitem(spark.sparkContext.environment, name, value)
    check_exports(f"az://{container}/exports", tmp_path, "spark")


def test_the_list_of_an_export_decides(container, tmp_path):
    check_lists(f"az://{container}/exports", tmp_path)


def test_a_missing_container_is_named(container, tmp_path):
    graph = small_graph(tmp_path / "small.omni")
    for target in ("there", "there.jsonl"):
        with pytest.raises(NotFoundError, match=r"-none/out.*the bucket does not exist") as said:
            exported(graph, f"az://{container}-none/out/{target}")
        assert said.value.code is ErrorCode.BUCKET_NOT_FOUND
