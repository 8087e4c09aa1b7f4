"""Start-up archives: recorded once, adopted when whole, and never in the way."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from omnigraph.engine.spark.archive import (
    SPARK_ARCHIVES_MAX,
    NoArchive,
    Record,
    Replay,
    archive_stem,
    choose_start,
)
from omnigraph.engine.spark.java import find_java, java_version, require_java
from omnigraph.errors import ErrorCode, InvalidInputError


@pytest.fixture
def java() -> Path:
    found = find_java()
    assert found is not None
    return found


def recording(cache: Path, java: Path) -> Record:
    start = choose_start(cache, java)
    assert isinstance(start, Record)
    return start


def finish(start: Record, content: bytes):
    """What a JVM does at its end: it writes the archive, and its files are closed."""
    start.path.write_bytes(content)
    os.close(start.lock)


def test_the_first_start_records(tmp_path, java):
    start = recording(tmp_path / "not yet" / "there", java)

    assert start.options == (f"-XX:ArchiveClassesAtExit={start.path}",)
    os.close(start.lock)


def test_while_one_records_others_start_without(tmp_path, java):
    start = recording(tmp_path, java)

    assert choose_start(tmp_path, java) == NoArchive()
    start.path.write_bytes(b"\0\0\0\0half of it")
    assert choose_start(tmp_path, java) == NoArchive()
    os.close(start.lock)


def test_a_recording_lasts_as_long_as_the_process_that_inherited_it(tmp_path, java):
    start = recording(tmp_path, java)
    command = [sys.executable, "-c", "input()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, pass_fds=[start.lock]) as jvm:
        finish(start, b"archive")
        assert choose_start(tmp_path, java) == NoArchive()
        jvm.communicate(b"\n")

    assert isinstance(choose_start(tmp_path, java), Replay)


def test_a_finished_archive_is_adopted_and_then_used(tmp_path, java):
    finish(recording(tmp_path, java), b"archive")

    adopted, again = (choose_start(tmp_path, java) for _ in range(2))

    assert isinstance(adopted, Replay)
    assert adopted == again
    assert adopted.path.read_bytes() == b"archive"
    assert adopted.options[0] == f"-XX:SharedArchiveFile={adopted.path}"
    assert "-XX:+VerifySharedSpaces" in adopted.options


@pytest.mark.parametrize("content", [b"", b"\0\0\0\0the header is written last"])
def test_an_archive_that_java_did_not_finish_is_recorded_again(content, tmp_path, java):
    finish(recording(tmp_path, java), content)

    again = recording(tmp_path, java)

    assert not again.path.exists()
    os.close(again.lock)


def test_a_start_that_left_no_archive_is_followed_by_another_recording(tmp_path, java):
    os.close(recording(tmp_path, java).lock)

    os.close(recording(tmp_path, java).lock)


@pytest.mark.parametrize("content", [b"", b"archiv", b"archive of another length"])
def test_an_archive_of_another_size_than_its_name_says_is_removed(content, tmp_path, java):
    finish(recording(tmp_path, java), b"archive")
    adopted = choose_start(tmp_path, java)
    assert isinstance(adopted, Replay)
    adopted.path.write_bytes(content)

    os.close(recording(tmp_path, java).lock)

    assert not adopted.path.exists()


def test_a_cache_that_cannot_be_written_is_no_obstacle(tmp_path, java):
    (tmp_path / "file").write_text("in the way")

    assert choose_start(tmp_path / "file", java) == NoArchive()
    assert choose_start(tmp_path / "file" / "below", java) == NoArchive()


def test_only_the_archives_used_last_are_kept(tmp_path, java):
    others = [tmp_path / f"spark-1.0.{n}-java-17-abc-3.jsa" for n in range(SPARK_ARCHIVES_MAX + 2)]
    for age, other in enumerate(others):
        other.write_bytes(b"old")
        os.utime(other, (1_000 - age, 1_000 - age))
    finish(recording(tmp_path, java), b"archive")

    choose_start(tmp_path, java)

    kept = [other for other in others if other.exists()]
    assert kept == others[: SPARK_ARCHIVES_MAX - 1]


def fake_java(home: Path, version: str) -> Path:
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.touch(mode=0o755)
    (home / "release").write_text(f'IMPLEMENTOR="X"\nJAVA_VERSION="{version}"\n')
    return java


def test_an_archive_belongs_to_one_java(tmp_path):
    one = fake_java(tmp_path / "one", "17.0.1")
    other = fake_java(tmp_path / "other", "21")

    assert "java-17.0.1-" in archive_stem(one)
    assert "java-21-" in archive_stem(other)
    before = archive_stem(one)
    (tmp_path / "one" / "release").write_text('JAVA_VERSION="17.0.1"\nBUILD="another"\n')
    assert archive_stem(one) != before


def test_an_old_java_is_refused_by_its_version(tmp_path, monkeypatch):
    java = fake_java(tmp_path, "11.0.2")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    assert java_version(java) == "11.0.2"
    with pytest.raises(InvalidInputError, match=r"needs Java 17.*is Java 11\.0\.2") as caught:
        require_java()
    assert caught.value.code is ErrorCode.ENGINE_UNAVAILABLE


def test_javas_home_wins_over_the_path_unless_it_is_empty(tmp_path, monkeypatch):
    java = fake_java(tmp_path / "home", "17")
    on_path = fake_java(tmp_path / "elsewhere", "21")
    monkeypatch.setenv("PATH", str(on_path.parent))

    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    assert find_java() == java
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nothing"))
    assert find_java() == on_path
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_java() is None
