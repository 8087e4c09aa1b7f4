"""Every engine returns what was worked out by hand, with and without indexes."""

import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from omnigraph.engine.local.execute import LocalEngine
from omnigraph.engine.protocol import Engine
from omnigraph.errors import ErrorCode, InvalidInputError
from omnigraph.model.tables import TableKey
from omnigraph.query.ir import Value
from omnigraph.storage import selections
from omnigraph.storage.tables import Table
from tests.oracle.comparisons import assert_same_rows
from tests.support.engines import answer, index_everything, store_tables
from tests.support.query_cases import CASES, QueryCase, TooLarge
from tests.support.query_cases.case import CaseGraph

Tables = Callable[[CaseGraph], dict[TableKey, Table]]


def made_once(root: Path, *, indexed: bool) -> Tables:
    @cache
    def make(on: CaseGraph) -> dict[TableKey, Table]:
        catalog = index_everything(on.catalog) if indexed else on.catalog
        return store_tables(root / str(id(on)), on.graph, catalog, indexed=indexed)

    return make


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    return made_once(tmp_path_factory.mktemp("plain"), indexed=False)


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    return made_once(tmp_path_factory.mktemp("indexed"), indexed=True)


def check(engine: Engine, tables: Tables, case: QueryCase, *, indexed: bool = False) -> None:
    def ask() -> list[dict[str, Value]]:
        on = case.on
        catalog = index_everything(on.catalog) if indexed else on.catalog
        return answer(engine, tables(on), case.compile(), catalog, case.values())

    if isinstance(case.expected, TooLarge):
        with pytest.raises(InvalidInputError) as refused:
            ask()
        assert refused.value.code is ErrorCode.VALUE_OUT_OF_RANGE
        return
    # The reference's rows are the expected ones, with the slack that sums of floats need.
    assert_same_rows(case.compile(), case.reference(), ask())


def asked(engine: str, case: QueryCase) -> ParameterSet:
    """A case for an engine; most of Spark's only under soak, since each costs it half a second.

    By the title, so that a new case moves no other one.
    """
    at_the_gate = engine == "local" or zlib.crc32(case.title.encode()) % 6 == 0
    marks = () if at_the_gate else (pytest.mark.soak,)
    return pytest.param(engine, case, marks=marks, id=f"{engine}-{case}")


@pytest.mark.parametrize(
    ("engine", "case"),
    [asked(engine, case) for engine in ("local", "spark") for case in CASES],
    indirect=["engine"],
)
def test_an_engine_returns_what_was_worked_out_by_hand(
    engine: Engine, plain: Tables, case: QueryCase
) -> None:
    check(engine, plain, case)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_looking_rows_up_by_index_changes_no_answer(
    monkeypatch: pytest.MonkeyPatch, indexed: Tables, case: QueryCase
) -> None:
    # Even of a small table, and even if most rows pass.
    monkeypatch.setattr(selections, "SELECTED_TABLE_ROWS_MIN", 0)
    monkeypatch.setattr(selections, "SELECTED_SHARE_MAX", 1)
    check(LocalEngine(), indexed, case, indexed=True)
