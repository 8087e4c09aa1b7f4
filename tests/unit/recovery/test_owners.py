"""Whether an owner is provably gone: processes end, are reaped late, and their numbers return."""

import errno
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from omnigraph.manifest.drafts import CommitDraft
from omnigraph.model.commits import OperationKind
from omnigraph.model.ids import CommitId, OperationId
from omnigraph.model.names import MAIN
from omnigraph.recovery import owners
from omnigraph.recovery.intents import Intent
from omnigraph.recovery.owners import Owner, is_gone, this_process, track_operation
from omnigraph.recovery.sidecars import is_live

WORK = OperationId("01J00000000000000000000000")


@pytest.fixture
def here() -> Owner:
    owner = this_process()
    assert owner is not None, "these tests need /proc"
    return owner


@pytest.fixture
def child(here: Owner) -> Iterator[tuple[subprocess.Popen[bytes], Owner]]:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        started = owners._start_of(process.pid)
        assert started is not None
        yield process, Owner(here.host, process.pid, started)
        process.kill()


def test_a_process_that_runs_is_not_gone(child):
    _, owner = child

    assert not is_gone(owner, WORK)


def test_a_process_that_ended_is_gone_even_before_its_parent_asks(child):
    process, owner = child
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert Path(f"/proc/{process.pid}/stat").exists(), "it is a zombie"

    assert is_gone(owner, WORK)

    process.wait()
    assert is_gone(owner, WORK)


def test_another_process_of_the_same_number_is_another_owner(child):
    _, owner = child

    assert is_gone(replace(owner, started=owner.started - 1), WORK)


def test_nobody_elsewhere_is_ever_known_to_be_gone(here):
    assert not is_gone(replace(here, host="elsewhere", pid=1 << 30), WORK)
    assert not is_gone(None, WORK)


def test_a_host_that_does_not_tell_proves_nothing(here, monkeypatch):
    monkeypatch.setattr(owners, "_host", lambda: "")

    assert this_process() is None
    assert not is_gone(here, WORK)


def test_a_process_that_may_not_be_looked_at_is_not_gone(here, monkeypatch):
    # Where users may not see each other's processes, /proc shows nothing of them.
    monkeypatch.setattr(owners, "_start_of", lambda _: None)
    monkeypatch.setattr(os, "kill", _not_permitted)

    assert not is_gone(replace(here, pid=1), WORK)


def test_a_process_with_too_many_open_files_learns_nothing_of_others(here, monkeypatch):
    def fail(*_: object, **__: object) -> str:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    with track_operation(WORK):
        monkeypatch.setattr(Path, "read_text", fail)
        assert not is_gone(here, WORK)
    assert this_process() is None


def _not_permitted(*_: object) -> None:
    raise PermissionError


def test_a_thread_of_this_process_is_gone_once_its_work_is(here):
    at_work, may_end = threading.Event(), threading.Event()

    def work() -> None:
        with track_operation(WORK):
            at_work.set()
            may_end.wait(60)

    thread = threading.Thread(target=work)
    thread.start()
    at_work.wait(60)
    assert not is_gone(here, WORK)
    assert is_gone(here, OperationId("another"))
    may_end.set()
    thread.join()

    assert is_gone(here, WORK)


def test_work_ends_however_its_block_ends(here):
    class PowerCutError(BaseException):
        pass

    with pytest.raises(PowerCutError), track_operation(WORK):
        raise PowerCutError

    assert is_gone(here, WORK)


def test_a_process_whose_name_is_a_trap_is_read_right(tmp_path, here):
    # The name in /proc/<pid>/stat may hold spaces and parentheses.
    program = tmp_path / "a) Z (b"
    program.symlink_to("/bin/sleep")
    with subprocess.Popen([str(program), "60"]) as process:
        started = owners._start_of(process.pid)
        assert started is not None
        assert not is_gone(Owner(here.host, process.pid, started), WORK)
        process.kill()


def test_an_intent_is_live_while_its_lease_runs_and_its_owner_may_be(here):
    now = datetime(2026, 1, 1, tzinfo=UTC)
    until = now + timedelta(seconds=1)
    draft = CommitDraft(MAIN, CommitId("x"), OperationKind.LOAD)
    intent = Intent(WORK, draft, now, lease_until=until)

    assert is_live(intent, now)
    assert not is_live(intent, until)
    assert not is_live(replace(intent, lease_until=None), now)
    assert not is_live(replace(intent, owner=here), now)
    with track_operation(WORK):
        assert is_live(replace(intent, owner=here), now)
        assert not is_live(replace(intent, owner=here), until)
