"""Environments that the package is installed in as users install it: from its wheel.

The libraries it needs are those of the environment of the tests, linked one by one, so that it
takes seconds, and some can be left out.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.support.sources import REPOSITORY

SPARK: Final = frozenset({"pyspark", "py4j", "pandas"})
"""What only the extra `spark` brings, by the names to import."""

_NOT_LINKED: Final = ("omnigraph", "_editable_impl_omnigraph", "pyspark_omnigraph", "pip", "__pyc")


@dataclass(frozen=True, slots=True)
class Environment:
    """An environment that nobody activated: no program of it is on the PATH but `omnigraph`.

    Attributes:
        python: Its interpreter.
        path: A value of PATH, on which `python3` has nothing installed.
    """

    python: Path
    path: str

    def run(self, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
        """Run its Python."""
        return subprocess.run(
            [self.python, *arguments],
            cwd=cwd,
            env=self.variables,
            capture_output=True,
            text=True,
            check=False,
            timeout=250,
        )

    @property
    def variables(self) -> dict[str, str]:
        """The variables of a process that uses it."""
        ours = ("OMNIGRAPH_", "PYTHON", "PYSPARK_", "SPARK_", "VIRTUAL_ENV")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
        return {**kept, "PATH": self.path, "NO_COLOR": "1", "COLUMNS": "80"}


def build_wheel(folder: Path) -> Path:
    """The wheel of this repository."""
    command = ["wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder)]
    subprocess.run([sys.executable, "-m", "pip", *command, str(REPOSITORY)], check=True)
    [wheel] = folder.glob("omnigraph-*.whl")
    return wheel


def make_environment(folder: Path, wheel: Path, *, without: Collection[str] = ()) -> Environment:
    """An environment with the wheel, and all that is installed here but what is left out."""
    venv.create(folder / "venv", with_pip=False)
    python = folder / "venv" / "bin" / "python"
    site = folder / "venv" / Path(sysconfig.get_path("purelib")).relative_to(sys.prefix)
    left_out = (*_NOT_LINKED, *without)
    for each in Path(sysconfig.get_path("purelib")).iterdir():
        if not each.name.startswith(left_out) and each.suffix != ".pth":
            (site / each.name).symlink_to(each)
    install = ["install", "--quiet", "--no-deps", "--no-index", str(wheel)]
    subprocess.run([sys.executable, "-m", "pip", "--python", python, *install], check=True)
    return Environment(python, _path(folder, python))


def install_environment(folder: Path, wheel: Path, *, extras: str = "") -> Environment:
    """An environment with the wheel, and with what pip finds for it in the package index."""
    venv.create(folder / "venv", with_pip=True)
    python = folder / "venv" / "bin" / "python"
    install = ["install", "--quiet", "--disable-pip-version-check", f"{wheel}{extras}"]
    subprocess.run([python, "-m", "pip", *install], check=True)
    return Environment(python, _path(folder, python))


def _path(folder: Path, python: Path) -> str:
    programs = folder / "programs"
    programs.mkdir()
    (programs / "omnigraph").symlink_to(python.with_name("omnigraph"))
    empty_python(programs)
    return os.pathsep.join([str(programs), os.environ["PATH"]])


def empty_python(folder: Path) -> Path:
    """A `python3` of our version that finds nothing but itself and what Spark brings along."""
    program, base = folder / "python3", Path(sys.base_prefix, "bin", "python3")
    program.write_text(
        "#!/bin/sh\n"
        "PYTHONPATH=$(printf %s \"$PYTHONPATH\" | tr : '\\n' | grep '[.]zip$' | paste -sd : -)\n"
        f'PYTHONPATH=$PYTHONPATH exec "{base}" -S "$@"\n'
    )
    program.chmod(0o755)
    return program
