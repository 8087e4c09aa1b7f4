"""`omnigraph check`: a table and exit 0 where all is well, every fault and exit 1 where not."""

from pathlib import Path

import pytest

import omnigraph
from omnigraph.cli.exits import Exit
from tests.support.crashes import copied
from tests.support.faults import FAULTS, sound_graph


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> str:
    return sound_graph(str(tmp_path_factory.mktemp("base") / "graph.omni")).uri


def test_a_sound_graph_is_a_table_of_what_was_checked(here, base):
    told = here("check", "--store", base)

    assert told.code == Exit.DONE
    header, *lines = told.out.splitlines()
    assert header.split() == ["checked", "count", "wrong", "what", "must", "hold"]
    assert [line.split()[0] for line in lines] == [
        "branch", "history", "schema", "table", "index", "head", "row", "rule", "sidecar",
        "recovery", "tag", "setting",
    ]  # fmt: skip
    assert told.err == f"sound: {base}, branches main, draft\n"


@pytest.mark.parametrize("name", ["a dangling edge", "a stray sidecar", "a dropped head"])
def test_a_fault_ends_with_one_and_says_what_where_and_what_next(here, base, tmp_path, name):
    store = copied(base, tmp_path / "graph.omni")
    fault = FAULTS[name]
    fault.plant(omnigraph.open(store))

    told = here("check", "--store", store)

    assert told.code == Exit.FAILED
    assert f"\nwrong[{fault.invariant}]: " in told.out
    assert "\n  where: " in told.out
    assert "\n  next: " in told.out
    assert "found wrong" in told.err


def test_programs_get_all_of_it_as_json(here, base, tmp_path):
    store = copied(base, tmp_path / "graph.omni")
    FAULTS["a dangling edge"].plant(omnigraph.open(store))

    told = here("check", "--store", store, "--json")

    assert told.code == Exit.FAILED
    assert (told.json["sound"], told.json["branches"]) == (False, ["main", "draft"])
    assert told.json["checked"]["branch"] == 2
    [finding] = told.json["findings"]
    assert finding["invariant"] == "rule"
    assert finding["subject"] == "endpoint Knows(dst)"
    assert finding["count"] == 1
    assert {"place", "problem", "next_step"} <= finding.keys()
    assert told.err == ""


def test_rows_need_not_be_read_and_one_branch_is_enough(here, base, tmp_path):
    store = copied(base, tmp_path / "graph.omni")
    FAULTS["a dangling edge"].plant(omnigraph.open(store))

    assert here("check", "--store", store, "--shallow").code == Exit.DONE
    assert here("check", "--store", store, "--branch", "draft").code == Exit.DONE
    missing = here("check", "--store", store, "--branch", "drft")
    assert (missing.code, "did you mean draft?" in missing.err) == (Exit.NOT_FOUND, True)


def test_a_graph_that_cannot_be_opened_is_checked_all_the_same(here, base, tmp_path):
    store = copied(base, tmp_path / "graph.omni")
    for each in Path(store, "__manifest", "data").glob("*.lance"):
        each.write_bytes(b"rubbish" * 100)

    told = here("check", "--store", store)

    assert told.code == Exit.FAILED
    assert "wrong[branch]: branch main" in told.out


def test_a_drift_is_shown_and_undone_only_when_that_is_confirmed(here, base, tmp_path):
    store = copied(base, tmp_path / "graph.omni")
    nothing = here("repair", "--store", store)
    assert (nothing.code, nothing.out) == (Exit.DONE, "")
    assert "nothing to repair" in nothing.err
    FAULTS["a head that nobody answers for"].plant(omnigraph.open(store))

    shown = here("repair", "--store", store)
    told = here("repair", "--store", store, "--json").json
    assert "node:Person" in shown.out
    assert "--confirm" in shown.err
    assert (told["repaired"], len(told["drifts"]), told["commit_ids"]) == (False, 1, [])
    assert here("check", "--store", store).code == Exit.FAILED

    done = here("repair", "--store", store, "--confirm")
    assert (done.code, "restored the published rows: commit" in done.err) == (Exit.DONE, True)
    assert here("check", "--store", store).code == Exit.DONE
