"""Random histories with cleanups in between, against a model of every commit and of the rules."""

import random
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any, Final

import pyarrow as pa
import pytest

from omnigraph.engine.local.topology import topologies
from omnigraph.errors import OmnigraphError
from omnigraph.maintenance import retention
from omnigraph.maintenance import topologies as storing
from omnigraph.maintenance.cleanup import plan, run
from omnigraph.maintenance.cleanup.results import CleanupResult
from omnigraph.maintenance.retention import Reason
from omnigraph.manifest.let_go import LetGoCommits
from omnigraph.storage import inventory
from tests.property.retention_walk import Walk
from tests.support.folding import eager_folds

GATE: Final = range(6)
STEPS: Final = 45


def check(uri: Path, seed: int, *, steps: int = STEPS) -> Counter[str]:
    """Take random steps; a failure names the seed and all steps up to it."""
    taken: list[str] = []
    with eager_folds(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "CLEANUP_CHUNK_FILES", 3)
        # Arrays of neighbours are stored, however few edges there are.
        patch.setattr(topologies, "STORED_EDGES_MIN", 1)
        patch.setattr(storing, "STORED_EDGES_MIN", 1)
        walk = Walk(uri, Random(seed))
        try:
            for _ in range(steps):
                taken.append(walk.step())
            walk.finish()
        except BaseException as failure:
            failure.add_note(f"in the history of seed {seed}, after")
            for number, step in enumerate(taken):
                failure.add_note(f"{number:3} {step}")
            raise
    return walk.counts


@pytest.mark.parametrize("seed", GATE)
def test_a_graph_with_cleanups_is_what_its_history_says(tmp_path: Path, seed: int) -> None:
    check(tmp_path / "graph.omni", seed)


@pytest.mark.soak
@pytest.mark.timeout(0)
def test_a_graph_with_many_cleanups_is_what_its_history_says() -> None:
    for _ in range(300):
        with tempfile.TemporaryDirectory() as folder:
            check(Path(folder) / "graph.omni", random.getrandbits(32), steps=120)


Patch = Callable[[pytest.MonkeyPatch], None]


def _forget_reason(reason: Reason) -> Patch:
    """Keep nothing for one of the reasons."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        reasons = retention._reasons

        def fewer(*arguments: Any) -> Iterator[Any]:
            return (each for each in reasons(*arguments) if each[0] is not reason)

        monkeypatch.setattr(retention, "_reasons", fewer)

    return patch


def _count_one_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep one commit more of each branch than was asked for."""
    newest = retention._newest
    monkeypatch.setattr(
        retention, "_newest", lambda commits, tips, count: newest(commits, tips, count + 1)
    )


def _skip_branches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the versions of branches name nothing."""
    collect = inventory.collect_named_files

    def main_only(tables: Any, location: str, ref: str | None, *rest: Any) -> None:
        if ref is None:
            collect(tables, location, ref, *rest)

    monkeypatch.setattr(plan, "collect_named_files", main_only)


def _skip_inherited_indexes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inventory, "_collect_inherited_indexes", lambda *_: None)


def _keep_no_record(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove without recording what expired, so that it reads as corruption."""
    monkeypatch.setattr(LetGoCommits, "mark", lambda *_: None)
    monkeypatch.setattr(LetGoCommits, "confirm", lambda _self, _run, _needed: {})
    monkeypatch.setattr(plan.CleanupPlan, "limited_to", lambda self, _: self)


def _leave_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run._Removal, "_remove_files", lambda *_: True)


def _leave_one_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not see the last file of each table that nothing names, in the preview either."""
    make = plan._Planning._plan_table

    def fewer(*arguments: Any) -> plan.TablePlan:
        table = make(*arguments)
        return replace(table, files=table.files[:-1])

    monkeypatch.setattr(plan._Planning, "_plan_table", fewer)


def _show_less(monkeypatch: pytest.MonkeyPatch) -> None:
    """Show in a preview one table less than is removed."""
    clean = run.clean

    def preview(*arguments: Any, dry_run: bool = False, **options: Any) -> CleanupResult:
        result = clean(*arguments, dry_run=dry_run, **options)
        return replace(result, versions=result.versions[1:]) if dry_run else result

    monkeypatch.setattr(run, "clean", preview)


def _do_not_look_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Confirm every mark, whatever was named since."""
    monkeypatch.setattr(run, "_spare", lambda marks, _: dict.fromkeys(marks, frozenset()))
    monkeypatch.setattr(LetGoCommits, "claim", LetGoCommits.require)


DEFECTS: Final[dict[str, Patch]] = {
    "tags keep nothing": _forget_reason(Reason.TAG),
    "bases of merges are not kept": _forget_reason(Reason.MERGE_BASE),
    "there is no grace": _forget_reason(Reason.GRACE),
    "young commits are not kept": _forget_reason(Reason.YOUNG),
    "the newest commits are not counted": _forget_reason(Reason.NEWEST),
    "one commit more is kept": _count_one_more,
    "branches name no files": _skip_branches,
    "branches inherit no indexes": _skip_inherited_indexes,
    "what expired is not recorded": _keep_no_record,
    "what became needed expires": _do_not_look_again,
    "files stay": _leave_files,
    "one file of a table stays": _leave_one_file,
    "a preview shows less": _show_less,
}


@pytest.mark.soak
@pytest.mark.timeout(0)
@pytest.mark.parametrize("defect", DEFECTS)
def test_a_defect_is_noticed(tmp_path: Path, defect: str, monkeypatch: pytest.MonkeyPatch) -> None:
    DEFECTS[defect](monkeypatch)
    with pytest.raises(
        (AssertionError, pytest.fail.Exception, OmnigraphError, OSError, pa.ArrowInvalid)
    ):
        _check_seeds(tmp_path)


def _check_seeds(folder: Path) -> None:
    for seed in range(40):
        check(folder / f"{seed}.omni", seed)
