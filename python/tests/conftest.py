"""What tests share: the program, a suite of one case, and how a skip is said."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

SUITE = """\
name = "fleet-test"
summary = "one case, for a moment"
precision = "1%"
time = "{time}"
[[block]]
mechanisms = ["pipe"]
workloads = ["latency"]
sizes = "64"
placements = ["unpinned"]
"""


@pytest.fixture(scope="session")
def binary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program, without the symbols for debuggers, which would be sent to every worker."""
    found = os.environ.get("IPCMARK_BINARY") or shutil.which("ipcmark")
    if not found or not Path(found).exists():
        missing("ipcmark (set IPCMARK_BINARY to its path)", "running it on hosts")
    stripped = tmp_path_factory.mktemp("program") / "ipcmark"
    shutil.copy(str(found), stripped)
    if shutil.which("strip"):
        subprocess.run(["strip", stripped], check=True)
    return stripped


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """A suite that takes a second."""
    return write_suite(tmp_path / "fleet-test.toml", "1s")


def write_suite(file: Path, time: str) -> Path:
    file.write_text(SUITE.format(time=time))
    return file


def missing(tool: str, untested: str) -> None:
    """Skips the test because `tool` is missing; with CI=true, where every tool must be there, it fails."""
    text = f"{tool} is missing: {untested} is not tested"
    if os.environ.get("CI") == "true":
        pytest.fail(text)
    pytest.skip(text)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Adds a line for each skip to the file that `cargo xtask test` reads."""
    report: pytest.TestReport = yield  # type: ignore[assignment]
    skips = os.environ.get("IPCMARK_SKIPS")
    if report.skipped and skips and isinstance(report.longrepr, tuple):
        with Path(skips).open("a") as file:
            file.write(f"{item.name}: {report.longrepr[2].removeprefix('Skipped: ')}\n")
    return report  # type: ignore[return-value]
