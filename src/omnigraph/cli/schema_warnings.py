"""Warnings about schemas that commands accept."""

from __future__ import annotations

from pathlib import Path

from omnigraph.cli import render
from omnigraph.cli.texts import read_text


def find_warnings(schema: Path) -> list[str]:
    """The warnings about a schema that was accepted, each as it is shown."""
    from omnigraph.lang.diagnostics import Severity
    from omnigraph.schema.parser import read_schema

    reading = read_schema(read_text(str(schema)), str(schema))
    return [
        diagnostic.render(reading.source)
        for diagnostic in reading.diagnostics
        if diagnostic.severity is Severity.WARNING
    ]


def say_warnings(schema: Path) -> None:
    """Show them on standard error."""
    for warning in find_warnings(schema):
        render.say(f"\n{warning}")
