"""Java's archives of loaded classes: what it checks of them, and what kills it."""

import os
import subprocess
from pathlib import Path

import pytest

from omnigraph.engine.spark.java import find_java


def java(cwd: Path, *options: str) -> subprocess.CompletedProcess[str]:
    executable = find_java()
    assert executable is not None
    command = [str(executable), *options, "-version"]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The bytes of an archive as Java wrote them."""
    directory = tmp_path_factory.mktemp("archive")
    java(directory, "-XX:ArchiveClassesAtExit=whole.jsa")
    return (directory / "whole.jsa").read_bytes()


def started(directory: Path, content: bytes, *options: str) -> int:
    (directory / "some.jsa").write_bytes(content)
    return java(directory, "-XX:SharedArchiveFile=some.jsa", *options).returncode


def test_an_archive_is_written_when_the_jvm_exits(whole):
    assert len(whole) > 1_000


def test_a_whole_archive_is_used(whole, tmp_path):
    assert started(tmp_path, whole, "-Xshare:on") == 0


def test_a_missing_archive_is_no_obstacle(tmp_path):
    assert java(tmp_path, "-XX:SharedArchiveFile=missing.jsa").returncode == 0


@pytest.mark.parametrize("content", [b"", b"\0" * 100_000, os.urandom(100_000)])
def test_a_file_that_is_no_archive_is_no_obstacle(content, tmp_path):
    assert started(tmp_path, content) == 0


def test_an_archive_cut_short_kills_the_jvm_even_if_it_is_to_verify(whole, tmp_path):
    half = whole[: len(whole) // 2]

    assert started(tmp_path, half, "-XX:+VerifySharedSpaces") != 0


def test_an_archive_whose_bytes_changed_is_passed_over_if_it_is_to_verify(whole, tmp_path):
    middle = len(whole) // 2
    changed = whole[:middle] + os.urandom(4096) + whole[middle + 4096 :]

    assert started(tmp_path, changed, "-XX:+VerifySharedSpaces") == 0
    # To be sure that it was passed over, and not used unharmed.
    assert started(tmp_path, changed, "-XX:+VerifySharedSpaces", "-Xshare:on") != 0


def test_what_the_jvm_warns_of_can_be_kept_off_standard_output(whole, tmp_path):
    middle = len(whole) // 2
    (tmp_path / "some.jsa").write_bytes(whole[:middle] + b"?" * 4096 + whole[middle + 4096 :])
    use = ("-XX:SharedArchiveFile=some.jsa", "-XX:+VerifySharedSpaces")

    assert "[warning][cds" in java(tmp_path, *use).stdout
    assert java(tmp_path, *use, "-Xlog:disable").stdout == ""
