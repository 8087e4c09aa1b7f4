"""What a starter and its clients believe about each other."""

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from omnigraph.warm import callers, client, freshness, place


def test_a_directory_of_this_user_alone_is_opened(tmp_path: Path) -> None:
    private = tmp_path / "warm"
    private.mkdir(mode=0o700)
    os.close(place.open_directory(str(private)))

    private.chmod(0o770)
    with pytest.raises(PermissionError):
        place.open_directory(str(private))


def test_a_directory_of_another_user_is_refused(tmp_path: Path, monkeypatch) -> None:
    tmp_path.chmod(0o700)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)

    with pytest.raises(PermissionError):
        place.open_directory(str(tmp_path))


def test_a_link_to_a_directory_is_refused(tmp_path: Path) -> None:
    private, link = tmp_path / "private", tmp_path / "link"
    private.mkdir(mode=0o700)
    link.symlink_to(private)

    with pytest.raises(OSError, match="link"):
        place.open_directory(str(link))


def test_a_directory_that_is_replaced_after_it_was_opened_is_not_used(tmp_path: Path) -> None:
    private = tmp_path / "warm"
    private.mkdir(mode=0o700)
    folder = place.open_directory(str(private))
    private.rename(tmp_path / "aside")
    private.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as theirs, socket.socket(socket.AF_UNIX) as mine:
        theirs.bind(str(private / "name"))
        theirs.listen()
        with pytest.raises(FileNotFoundError):
            mine.connect(place.address(folder, "name"))
    os.close(folder)


def test_the_process_at_the_other_end_must_be_of_this_user(monkeypatch) -> None:
    mine, theirs = socket.socketpair(socket.AF_UNIX)
    with mine, theirs:
        assert client.require_own(mine) == os.getpid()
        monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
        with pytest.raises(PermissionError):
            client.require_own(mine)


@pytest.mark.parametrize(
    ("change", "trait"),
    [
        (["nice", "-n", "3"], "priority"),
        (["taskset", "-c", "0"], "processors"),
        (["prlimit", "--nofile=99:99"], "limits"),
        (["setpriv", "--no-new-privs"], "rights"),
        (["unshare", "--net"], "namespaces"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_a_process_that_has_something_else_is_seen_to(change: list[str], trait: str) -> None:
    if shutil.which(change[0]) is None:
        pytest.skip(f"this machine has no {change[0]}")
    program = "import sys; print('ready', flush=True); sys.stdin.read()"
    traits = {}
    for prefix in ([], change):
        with subprocess.Popen(
            [*prefix, sys.executable, "-c", program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ) as process:
            assert process.stdout is not None
            if process.stdout.readline() != b"ready\n":
                pytest.skip(f"this user may not {change[0]}")
            traits[len(prefix)] = callers.look_at(process.pid).traits
            process.kill()
    plain, changed = traits.values()

    assert [name for name in plain if plain[name] != changed[name]] == [trait]


def test_umask_and_signals_are_read_from_the_kernel() -> None:
    shell = "trap '' INT HUP; umask 027; exec sleep 60"
    with subprocess.Popen(["bash", "-c", f"echo $$; {shell}"], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        while Path(f"/proc/{process.pid}/comm").read_text() != "sleep\n":
            pass
        caller = callers.look_at(process.pid)
        process.kill()

    assert caller.umask == 0o027
    assert {1, 2} <= caller.ignores
    assert 15 not in caller.ignores


def test_a_file_that_changes_is_noticed(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "thing.py").write_text("one = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    __import__("thing")
    files = freshness.imported_files()
    assert str(tmp_path / "thing.py") in files
    assert any(path.endswith("grammar.lark") for path in files)
    assert freshness.is_fresh(files)

    # The same size and time, but another file: as when a package is installed again.
    before = (tmp_path / "thing.py").stat()
    (tmp_path / "other.py").write_text("one = 2\n")
    os.utime(tmp_path / "other.py", ns=(before.st_atime_ns, before.st_mtime_ns))
    (tmp_path / "other.py").rename(tmp_path / "thing.py")
    assert not freshness.is_fresh(files)
    sys.modules.pop("thing")
