"""Modules of the web app that need no browser: bundled, and run by Node."""

import shutil
import subprocess

import pytest

from tests.support.sources import REPOSITORY

WEB = REPOSITORY / "web"


@pytest.mark.parametrize("name", ["modules", "review"])
def test_the_modules_pass_their_tests(tmp_path, name):
    bundler = WEB / "node_modules/.bin/rolldown"
    if shutil.which("node") is None or not bundler.exists():
        pytest.skip("BROWSER TESTS ARE SKIPPED: there is no Node, or the app was not built")
    bundle = tmp_path / "modules.mjs"
    options = ["--platform", "node", "--format", "esm", "--file", str(bundle), "--logLevel", "warn"]
    made = subprocess.run(
        [bundler, WEB / f"tests/{name}.ts", *options], capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, made.stdout + made.stderr
    ran = subprocess.run(["node", "--test", bundle], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "# fail 0" in ran.stdout
