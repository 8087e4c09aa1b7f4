"""A world for each test, copied from one."""

from pathlib import Path
from shutil import copytree

import pytest

from tests.contract.policy.worlds import make_world


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("policy")
    make_world(folder)
    return folder


@pytest.fixture
def place(template: Path, tmp_path: Path) -> Path:
    copytree(template, tmp_path / "copy")
    return tmp_path / "copy"
