"""The user's cache: what is kept is found again, and whatever is wrong with it only costs time."""

import os
from pathlib import Path

import pytest
from lark import Lark

from omnigraph import caches
from omnigraph.caches import CACHED_VERSIONS_MAX
from omnigraph.lang import grammar


@pytest.fixture
def directory(monkeypatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "omnigraph"


def test_the_cache_is_the_users(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert caches.cache_directory() == tmp_path / "omnigraph"

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert caches.cache_directory() == tmp_path / ".cache" / "omnigraph"


@pytest.mark.usefixtures("directory")
def test_what_is_kept_is_recalled_by_its_name_and_key():
    caches.keep("tables", b"key", b"data")

    assert caches.recall("tables", b"key") == b"data"
    assert caches.recall("tables", b"another key") is None
    assert caches.recall("others", b"key") is None


def test_only_the_user_can_read_what_is_kept(directory):
    caches.keep("tables", b"key", b"data")
    (kept,) = directory.iterdir()

    assert kept.stat().st_mode & 0o777 == 0o600
    assert directory.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("damage", [b"", b"x", bytes(40)])
def test_a_damaged_file_is_not_recalled_and_is_replaced(directory, damage):
    caches.keep("tables", b"key", b"data")
    (kept,) = directory.iterdir()
    kept.write_bytes(damage)

    assert caches.recall("tables", b"key") is None
    caches.keep("tables", b"key", b"data")
    assert caches.recall("tables", b"key") == b"data"


def test_a_file_that_others_can_write_is_not_recalled(directory):
    caches.keep("tables", b"key", b"data")
    (kept,) = directory.iterdir()
    kept.chmod(0o620)

    assert caches.recall("tables", b"key") is None


@pytest.mark.usefixtures("directory")
def test_a_file_of_somebody_else_is_not_recalled(monkeypatch):
    caches.keep("tables", b"key", b"data")
    somebody = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: somebody)

    assert caches.recall("tables", b"key") is None


def test_a_link_is_not_followed(directory):
    caches.keep("tables", b"key", b"data")
    (kept,) = directory.iterdir()
    kept.rename(directory / "elsewhere")
    kept.symlink_to(directory / "elsewhere")

    assert caches.recall("tables", b"key") is None


def test_a_cache_that_cannot_be_written_keeps_nothing_and_says_nothing(monkeypatch, tmp_path):
    (tmp_path / "omnigraph").write_text("a file, where the directory should be")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    caches.keep("tables", b"key", b"data")
    assert caches.recall("tables", b"key") is None


def test_a_user_without_a_home_has_no_cache(monkeypatch):
    def no_home() -> Path:
        message = "no home"
        raise RuntimeError(message)

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", no_home)

    caches.keep("tables", b"key", b"data")
    assert caches.recall("tables", b"key") is None


def test_the_newest_few_keys_of_a_name_are_kept(directory):
    caches.keep("others", b"key", b"data")
    for each in range(CACHED_VERSIONS_MAX + 2):
        caches.keep("tables", b"%d" % each, b"data")
        (written,) = set(directory.glob("tables-*")) - {
            path for path in directory.glob("tables-*") if path.stat().st_mtime < 1_000_000
        }
        os.utime(written, (each, each))

    assert [
        caches.recall("tables", b"%d" % each) is not None for each in range(CACHED_VERSIONS_MAX + 2)
    ] == [False, False, *[True] * CACHED_VERSIONS_MAX]
    assert caches.recall("others", b"key") == b"data"


@pytest.mark.usefixtures("directory")
@pytest.mark.parametrize("package", ["omnigraph.query", "omnigraph.schema"])
def test_a_parser_is_made_from_the_tables_of_an_earlier_process(monkeypatch, package):
    made = grammar._lark.__wrapped__(package)

    def refuse(*_: object, **__: object) -> None:
        message = "the tables are made again"
        raise AssertionError(message)

    monkeypatch.setattr(Lark, "__init__", refuse)
    recalled = grammar._lark.__wrapped__(package)

    assert recalled.rules == made.rules
    assert [str(each) for each in recalled.terminals] == [str(each) for each in made.terminals]


def test_another_grammar_or_another_lark_makes_tables_again(directory, monkeypatch):
    grammar._lark.__wrapped__("omnigraph.schema")
    monkeypatch.setattr(grammar, "lark_version", "0.0.0")
    grammar._lark.__wrapped__("omnigraph.schema")

    assert len(list(directory.iterdir())) == 2
