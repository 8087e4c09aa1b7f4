"""Building the peers' environment, as far as this machine can have it."""

import subprocess
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parents[2] / ".venv-peers"
REQUIREMENTS: Final = Path(__file__).parent / "requirements.txt"
INSTALL_SECONDS_MAX: Final = 170


def main() -> None:
    """Install what is not there yet; whoever fails is absent from the run, and says so there."""
    if not python().exists():
        venv.create(FOLDER, with_pip=True)
    for alternatives in _paragraphs():
        for pins in alternatives:
            if not (obstacle := _install(pins)):
                print(f"{pins[0]} is there")
                break
            print(f"{pins[0]} does not install here: {obstacle}")


def python() -> Path:
    """The interpreter of the peers' environment, there or not."""
    return FOLDER / "bin" / "python"


def _paragraphs() -> Iterator[list[list[str]]]:
    """Of each peer its alternatives, each of them the pins that are installed together."""
    for paragraph in REQUIREMENTS.read_text().split("\n\n"):
        alternatives: list[list[str]] = []
        for line in paragraph.splitlines():
            if line.startswith(" "):
                alternatives[-1].extend(line.split())
            elif line and not line.startswith("#"):
                alternatives.append([line])
        if alternatives:
            yield alternatives


def _install(pins: list[str]) -> str:
    """What stood in the way, if anything."""
    pip = [str(python()), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    try:
        done = subprocess.run(
            [*pip, "--only-binary", ":all:", "--no-deps", *pins],
            timeout=INSTALL_SECONDS_MAX,
            capture_output=True,
            text=True,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"more than {INSTALL_SECONDS_MAX} s"
    return "" if done.returncode == 0 else (done.stderr.strip() or "pip failed").splitlines()[-1]


if __name__ == "__main__":
    main()
