"""Programs: the frame of every benchmark, from its command line to its section of RESULTS.md."""

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks import inputs, report

Section = Callable[[argparse.Namespace, Path], str]
"""Runs everything below a folder of its own, and returns the section's text."""


def parser(description: str | None, *options: str) -> argparse.ArgumentParser:
    """A parser of what all programs have, and of some of what several have.

    Args:
        options: Which of `quick`, `peers`, `spark` and `inputs` the program has, too.
    """
    made = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("--write", action="store_true", help="keep the answer in RESULTS.md")
    if "quick" in options:
        made.add_argument("--quick", action="store_true", help="a few rows: does it run at all?")
    if "inputs" in options:
        made.add_argument("--inputs", type=Path, default=inputs.FOLDER, help="made once, kept here")
    for name in ("peers", "spark"):
        if name in options:
            made.add_argument(f"--{name}", action=argparse.BooleanOptionalAction, default=True)
    return made


def run(title: str, given: argparse.Namespace, section: Section) -> None:
    """Run everything, print it, and with `--write` keep it in RESULTS.md."""
    with tempfile.TemporaryDirectory(prefix="omnigraph-bench-") as folder:
        text = section(given, Path(folder))
    print(text)
    if given.write:
        report.write_section(title, text)
