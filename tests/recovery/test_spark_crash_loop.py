"""A load on Spark is cut off at every failpoint; its driver is killed at all that executors do."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from functools import partial
from itertools import count, product
from pathlib import Path
from typing import Any, Final

import pytest

import omnigraph
from omnigraph.failpoints import Failpoint
from omnigraph.graph import Graph
from omnigraph.model.names import MAIN
from omnigraph.recovery.sweep import Recovery
from tests.recovery.test_crash_loop import Loop
from tests.support import crashes, spark_drivers
from tests.support.crashes import Bases, Cut, cut_off, has_sidecar, picture
from tests.support.spark_loads import SCRATCH
from tests.support.spark_traps import Moment, names_of
from tests.support.writers import DRAFT, WRITERS, Writer

pytestmark = pytest.mark.usefixtures("spark")

# Ada and an edge are replaced where the mode allows it, the others are new.
LINES: Final = (
    {"type": "Person", "data": {"name": "eva", "age": 7}},
    {"edge": "Knows", "id": "eva-ada", "from": "eva", "to": "ada", "data": {"since": "2024-01-31"}},
)
REPLACED: Final = (
    {"type": "Person", "data": {"name": "ada", "age": 40}},
    {"edge": "Knows", "id": "ada-bob", "from": "ada", "to": "bob", "data": {"since": "2025-01-31"}},
)
KEPT: Final = ({"type": "Person", "data": {"name": "bob"}},)

KINDS: Final = {
    "append": ("append", MAIN, LINES),
    "merge": ("merge", MAIN, (*LINES, *REPLACED)),
    "overwrite": ("overwrite", MAIN, (*LINES, *REPLACED, *KEPT)),
    "first merge of a branch": ("merge", DRAFT, (*LINES, *REPLACED)),
    "first append of a branch": ("append", DRAFT, LINES),
}

NOTHING_YET: Final = Cut(Failpoint.WRITE_AFTER_HEAL)
"""Where nothing has been done: as which a load counts whose executors are still at work."""

_numbers = count()


def write(uri: str, path: str, kind: str) -> None:
    """Carry out a load of this kind."""
    _load(path, kind, omnigraph.open(uri))


def _load(path: str, kind: str, graph: Graph) -> object:
    mode, branch, _ = KINDS[kind]
    return graph.load(path, mode=mode, branch=str(branch), engine="spark", index=False)


@pytest.fixture
def loop_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Loop]:
    """The crash loop of all writers, for a load."""
    bases = Bases(tmp_path / "bases")

    def loop_of(kind: str) -> Loop:
        mode, branch, lines = KINDS[kind]
        path = input_of(tmp_path, kind)
        Path(path).write_text("".join(f"{json.dumps(each)}\n" for each in lines))
        writer = Writer(
            partial(_load, path, kind), tables=2, replans=mode == "append", branch=str(branch)
        )
        monkeypatch.setitem(WRITERS, kind, writer)
        return Loop(
            lambda kind: crashes.copied(bases.of(kind), tmp_path / f"{next(_numbers)}.omni"), kind
        )

    return loop_of


def input_of(folder: Path, kind: str) -> str:
    return str(folder / f"{kind}.jsonl")


def in_process(cut: Cut, work: Callable[..., object], *arguments: object) -> None:
    cut_off(cut, lambda: work(*arguments))


@pytest.mark.soak
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("kind", KINDS)
def test_a_load_that_is_cut_off_is_all_or_nothing(loop_of, kind):
    loop = loop_of(kind)
    for cut in loop.cuts:
        loop.once(cut, by=in_process)
    assert loop.tried == len(loop.cuts) > 15


@pytest.mark.soak
@pytest.mark.parametrize(
    ("name", "point"),
    [
        ("_restore", Failpoint.WRITE_AFTER_EACH_APPLY),
        ("_roll_forward", Failpoint.PUBLISH_AFTER_READ),
    ],
)
def test_the_loop_notices_a_recovery_that_forgets_a_table(loop_of, monkeypatch, name, point):
    loop = loop_of("merge")
    whole = getattr(Recovery, name)
    at = 0 if name == "_restore" else 2

    def half(recovery: Recovery, *given: Any) -> object:
        given = (*given[:at], given[at][:1] if at else given[at][1:], *given[at + 1 :])
        return whole(recovery, *given)

    monkeypatch.setattr(Recovery, name, half)

    with pytest.raises(AssertionError):
        loop.once(Cut(point), by=in_process)


def assert_scratch_is_nobodys(uri: str) -> None:
    """What a load that was killed has left is nothing that anybody reads."""
    before = picture(uri)
    shutil.rmtree(Path(uri, SCRATCH), ignore_errors=True)
    assert picture(uri) == before


def killed_once(loop: Loop, folder: Path, name: str, moment: Moment) -> bool:
    """Kill the driver while executors do this, and check what is left; whether scratch was."""
    path = input_of(folder, loop.writer)

    def kill_during(_: Cut, __: object, uri: str, kind: str) -> None:
        marks = folder / f"{next(_numbers)}.marks"
        spark_drivers.kill_during(name, moment, marks, write, uri, path, kind)

    uri = loop.crashed(NOTHING_YET, by=kill_during)
    assert not has_sidecar(uri)
    has_left = any(Path(uri, SCRATCH).rglob("*.arrow"))
    crashes.reopen(uri)
    loop.check(uri, NOTHING_YET)
    assert_scratch_is_nobodys(uri)
    write(uri, path, loop.writer)
    assert picture(uri) == loop.steps[-1].after
    return has_left


def names(loop: Loop, folder: Path) -> list[str]:
    return names_of(lambda: write(loop.place(), input_of(folder, loop.writer), loop.writer))


@pytest.mark.soak
def test_a_driver_that_is_killed_while_executors_stage_leaves_nothing(loop_of, tmp_path):
    loop = loop_of("merge")
    last = names(loop, tmp_path)[-1]

    assert killed_once(loop, tmp_path, last, Moment.TELLING), "scratch was cleared before"


@pytest.mark.soak
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("kind", ["append", "merge"])
def test_a_driver_that_is_killed_at_any_work_of_executors_leaves_nothing(loop_of, tmp_path, kind):
    loop = loop_of(kind)
    for name, moment in product(names(loop, tmp_path), Moment):
        killed_once(loop, tmp_path, name, moment)
    assert loop.tried >= 4


@pytest.mark.soak
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("kind", ["append", "merge"])
def test_a_driver_that_is_killed_at_any_failpoint_is_all_or_nothing(loop_of, tmp_path, kind):
    loop = loop_of(kind)
    path = input_of(tmp_path, kind)

    def kill_at(cut: Cut, _: object, uri: str, kind: str) -> None:
        spark_drivers.kill_at(cut, write, uri, path, kind)

    first_passes = {cut.point: cut for cut in reversed(loop.cuts)}
    for cut in first_passes.values():
        loop.once(cut, by=kill_at)
    assert loop.tried == len(first_passes)
