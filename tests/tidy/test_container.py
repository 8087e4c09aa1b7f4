"""The container file names what exists: files, extras, settings and commands."""

import re
import tomllib
from pathlib import Path
from typing import Final

from omnigraph.server.settings import ServerSettings

ROOT: Final = Path(__file__).parents[2]
TEXT: Final = (ROOT / "Containerfile").read_text(encoding="utf-8")


def test_what_is_copied_is_here():
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", TEXT, re.MULTILINE)
    names = [name for line in copied for name in line.split()]
    assert names
    assert [name for name in names if not (ROOT / name).exists()] == []


def test_the_extras_exist():
    [extras] = re.findall(r"'\.\[([a-z,]+)\]'", TEXT)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert set(extras.split(",")) <= project["optional-dependencies"].keys()


def test_the_variables_are_settings():
    names = re.findall(r"^ENV OMNIGRAPH_SERVER_(\w+)=", TEXT, re.MULTILINE)
    assert {name.lower() for name in names} <= ServerSettings.model_fields.keys()


def test_it_does_not_serve_as_root_or_without_tokens():
    assert TEXT.index("\nUSER omnigraph") < TEXT.index("\nENTRYPOINT")
    assert "ANONYMOUS" not in TEXT.upper()
