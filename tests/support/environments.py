"""Environments with the package installed from its wheel, as users install it.

The libraries it needs are linked one by one from the environment of the tests, which takes seconds
and allows omitting some.
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
"""The packages that only the extra `spark` installs, by their import names."""

_NOT_LINKED: Final = ("omnigraph", "_editable_impl_omnigraph", "pyspark_omnigraph", "pip", "__pyc")


@dataclass(frozen=True, slots=True)
class Environment:
    """An environment that is not activated: of its programs only `omnigraph` is on the PATH.

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
    app = REPOSITORY / "src/omnigraph/server/built_app/index.html"
    # Without Node, `make test` has reported that there is no app.
    variables = os.environ if app.is_file() else {**os.environ, "OMNIGRAPH_WEB": "skip"}
    program = [sys.executable, "-m", "pip", *command, str(REPOSITORY)]
    subprocess.run(program, check=True, env=variables)
    [wheel] = folder.glob("omnigraph-*.whl")
    return wheel


def make_environment(folder: Path, wheel: Path, *, without: Collection[str] = ()) -> Environment:
    """An environment with the wheel, and all packages installed here except those in `without`."""
    venv.create(folder / "venv", with_pip=False)
    python = folder / "venv" / "bin" / "python"
    site = folder / "venv" / Path(sysconfig.get_path("purelib")).relative_to(sys.prefix)
    left_out = (*_NOT_LINKED, *without)
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        if not path.name.startswith(left_out) and path.suffix != ".pth":
            (site / path.name).symlink_to(path)
    install = ["install", "--quiet", "--no-deps", "--no-index", str(wheel)]
    subprocess.run([sys.executable, "-m", "pip", "--python", python, *install], check=True)
    return Environment(python, _path(folder, python))


def install_environment(folder: Path, wheel: Path, *, extras: str = "") -> Environment:
    """An environment with the wheel, and its dependencies from the package index."""
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
    """A `python3` of our version that can import only its standard library and Spark's archives."""
    program, base = folder / "python3", Path(sys.base_prefix, "bin", "python3")
    program.write_text(
        "#!/bin/sh\n"
        "PYTHONPATH=$(printf %s \"$PYTHONPATH\" | tr : '\\n' | grep '[.]zip$' | paste -sd : -)\n"
        f'PYTHONPATH=$PYTHONPATH exec "{base}" -S "$@"\n'
    )
    program.chmod(0o755)
    return program
