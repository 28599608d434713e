"""Fleets on real engines: what each host measures, what is tried again, what is reported."""

import hashlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import cloudpickle
import polars as pl
import pytest
from distributed import Client

from conftest import write_suite
from ipcmark.fleet import host as on_host
from ipcmark.fleet.cli import suite as suite_of
from ipcmark.fleet.clusters import connected
from ipcmark.fleet.dataset import Dataset, Order
from ipcmark.fleet.run import Fleet, Limits, whole
from ipcmark.invalid import Invalid

# A worker that a test has killed comes again, which takes minutes on a busy host.
PATIENT = Limits(lost_s=600)


@contextmanager
def fleet(
    client: Client,
    directory: Path,
    binary: Path,
    suite: Path,
    runs: int,
    limits: Limits,
    say: Callable[[str], None],
) -> Iterator[Fleet]:
    """What `ipcmark-fleet run` makes of its arguments."""
    dataset = Dataset(directory)
    order = Order(*suite_of(str(suite)), hashlib.sha256(binary.read_bytes()).hexdigest(), [])
    with dataset.held_for(order):
        yield Fleet(client, dataset, order, binary, runs, limits, say)


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with connected("local", 2) as made:
        yield made


def test_a_host_with_two_workers_makes_one_run_at_a_time_and_a_fleet_goes_on_where_it_was(
    client: Client, tmp_path: Path, binary: Path, suite: Path
) -> None:
    said: list[str] = []
    with fleet(client, tmp_path / "data", binary, suite, 2, PATIENT, said.append) as measured:
        assert measured.run() == []
    hosts = Dataset(tmp_path / "data").hosts().sort("started_at")
    assert hosts.height == 2
    began, took = hosts["started_at"], hosts["elapsed_ns"]
    assert (began[1] - began[0]).total_seconds() >= took[0] / 1e9
    cases = Dataset(tmp_path / "data").scan("cases").filter(~pl.col("floor")).collect()
    assert cases["case"].to_list() == ["pipe latency 64 unpinned"] * 2
    assert cases["suite"].unique().to_list() == ["fleet-test"]
    assert cases["kernel"].unique().to_list() == hosts["kernel"].unique().to_list()
    assert len(list((tmp_path / "data/results").glob("*.jsonl"))) == 2

    said.clear()
    with fleet(client, tmp_path / "data", binary, suite, 3, PATIENT, said.append) as measured:
        assert measured.run() == []
    assert any("1 of 3 runs to do" in line for line in said)
    assert sum("began" in line for line in said) == 1
    assert Dataset(tmp_path / "data").hosts().height == 3

    other = write_suite(tmp_path / "other.toml", "2s")
    with (
        pytest.raises(Invalid, match="another order: suite, suite_text"),
        fleet(client, tmp_path / "data", binary, other, 3, PATIENT, said.append),
    ):
        pass


def test_a_run_whose_worker_is_killed_is_made_again(client: Client, tmp_path: Path, binary: Path, suite: Path) -> None:
    said: list[str] = []

    def say(text: str) -> None:
        said.append(text)
        if "began" in text and sum("began" in line for line in said) == 1:
            kill_worker(client, measured)

    with fleet(client, tmp_path / "data", binary, suite, 1, PATIENT, say) as measured:
        assert measured.run() == []
    assert any("the run failed: its worker died; again" in line for line in said), said
    assert Dataset(tmp_path / "data").hosts().height == 1


def kill_worker(client: Client, measured: Fleet) -> None:
    """Kills the worker that is at work, a moment from now."""
    worker = next(host.attempt.worker for host in measured.hosts.values() if host.attempt)
    pid = client.run(os.getpid, workers=[worker])[worker]
    threading.Timer(0.7, os.kill, [pid, signal.SIGKILL]).start()


def test_a_run_ends_with_its_worker(
    client: Client, tmp_path: Path, binary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The first attempt may meet a worker that the tests before have ended, of which the scheduler hears late.
    monkeypatch.setattr("ipcmark.fleet.run.MOST_FAILURES", 3)
    endless = write_suite(tmp_path / "endless.toml", "1h")

    def say(text: str) -> None:
        if "began" in text:
            kill_worker(client, measured)

    with fleet(client, tmp_path / "data", binary, endless, 1, PATIENT, say) as measured:
        assert "its worker died" in measured.run()[0]
    await_end(measured)


@contextmanager
def interruptible() -> Iterator[None]:
    """Takes SIGINT as at a terminal: a shell has what it starts in the background ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before or signal.SIG_DFL)


def test_a_run_ends_when_the_fleet_is_interrupted(client: Client, tmp_path: Path, binary: Path) -> None:
    endless = write_suite(tmp_path / "endless.toml", "1h")

    def say(text: str) -> None:
        if "began" in text:
            threading.Timer(1, os.kill, [os.getpid(), signal.SIGINT]).start()

    with (
        interruptible(),
        pytest.raises(KeyboardInterrupt),
        fleet(client, tmp_path / "data", binary, endless, 1, PATIENT, say) as measured,
    ):
        measured.run()
    await_end(measured)


def await_end(measured: Fleet) -> None:
    """Waits until nothing of the run is left on this host."""
    name = f"ipcmark-{measured.order.binary_sha256[:16]}"
    for _ in range(150):
        programs = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
        if name not in programs:
            return
        time.sleep(0.1)
    pytest.fail(f"{name} is still running")


def test_a_run_that_hangs_is_ended_and_reported(
    client: Client, tmp_path: Path, binary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The first attempt may meet a worker that the tests before have ended, of which the scheduler hears late.
    monkeypatch.setattr("ipcmark.fleet.run.MOST_FAILURES", 3)
    endless = write_suite(tmp_path / "endless.toml", "1h")
    limits = Limits(run_s=2, lost_s=PATIENT.lost_s)
    with fleet(client, tmp_path / "data", binary, endless, 1, limits, print) as measured:
        problems = measured.run()
    assert len(problems) == 1
    assert "given up after 3 attempts: it took longer than 2 s" in problems[0]


def test_a_suite_that_the_program_refuses_is_reported_at_once(client: Client, tmp_path: Path, binary: Path) -> None:
    said: list[str] = []
    broken = tmp_path / "broken.toml"
    broken.write_text("name = 1")
    with fleet(client, tmp_path / "data", binary, broken, 1, PATIENT, said.append) as measured:
        problems = measured.run()
    assert "ipcmark ended with 2" in problems[0]
    assert sum("began" in line for line in said) == 1


def test_a_host_that_is_gone_is_reported(tmp_path: Path, binary: Path) -> None:
    with connected("local", 1) as client:
        endless = write_suite(tmp_path / "endless.toml", "1h")

        def say(text: str) -> None:
            if "began" in text:
                client.cluster.scale(0)

        with fleet(client, tmp_path / "data", binary, endless, 1, Limits(lost_s=1), say) as measured:
            problems = measured.run()
    assert "lost: no worker of it for 1 s" in problems[0]


def test_a_program_that_changed_on_its_way_is_not_run(tmp_path: Path) -> None:
    program = tmp_path / "ipcmark"
    program.write_bytes(b"changed")
    with pytest.raises(OSError, match="something changed it"):
        on_host._check(program, "0" * 64)


def test_a_host_needs_not_have_this_package() -> None:
    without = (
        "import sys; sys.modules['ipcmark'] = None; import cloudpickle; print(*cloudpickle.load(sys.stdin.buffer)())"
    )
    sent = cloudpickle.dumps(whole(on_host.identify))
    answer = subprocess.run([sys.executable, "-c", without], input=sent, capture_output=True, check=True)
    assert answer.stdout.decode().split() == list(on_host.identify())
