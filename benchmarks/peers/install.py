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
        taken = next(filter(_install, alternatives), None)
        print(f"{taken} is there" if taken else f"none of {', '.join(alternatives)} installs here")


def python() -> Path:
    """The interpreter of the peers' environment, there or not."""
    return FOLDER / "bin" / "python"


def _paragraphs() -> Iterator[list[str]]:
    for paragraph in REQUIREMENTS.read_text().split("\n\n"):
        if pins := [line for line in paragraph.splitlines() if line and not line.startswith("#")]:
            yield pins


def _install(pin: str) -> bool:
    pip = [str(python()), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    try:
        done = subprocess.run(
            [*pip, "--only-binary", ":all:", "--no-deps", pin],
            timeout=INSTALL_SECONDS_MAX,
            capture_output=True,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


if __name__ == "__main__":
    main()
