"""Runs between pairs of hosts: both are occupied, each host measures, and one alone does not wait for ever."""

import hashlib
from pathlib import Path

import polars as pl
import pytest
from distributed import Client, get_worker

from ipcmark.fleet import host as on_host
from ipcmark.fleet.cli import suite as suite_of
from ipcmark.fleet.clusters import connected
from ipcmark.fleet.dataset import Dataset, Order
from ipcmark.fleet.run import Fleet, Host, Limits

# `env` reaches an endpoint on this very host, where the address of every host is that of loopback.
PEER_VIA = "env PEER={host}"
OPTIONS = ["--server-address", "127.0.0.1"]
SUITE = """\
name = "pairs-test"
summary = "one case between hosts"
precision = "1%"
time = "1s"
[[block]]
mechanisms = ["tcp"]
workloads = ["latency"]
sizes = "64"
placements = ["remote"]
"""


def fleet_of(client: Client, directory: Path, binary: Path, suite: Path, said: list[str], lost_s: float) -> Fleet:
    """A fleet of pairs."""
    digest = hashlib.sha256(binary.read_bytes()).hexdigest()
    order = Order(*suite_of(str(suite)), digest, OPTIONS, PEER_VIA)
    dataset = Dataset(directory)
    directory.mkdir()
    dataset.check(order)
    return Fleet(client, dataset, order, binary, 2, Limits(lost_s=lost_s), said.append, PEER_VIA)


@pytest.fixture
def pair_suite(tmp_path: Path) -> Path:
    file = tmp_path / "pairs-test.toml"
    file.write_text(SUITE)
    return file


def test_each_of_two_hosts_measures_to_the_other_and_never_both_at_once(
    tmp_path: Path, binary: Path, pair_suite: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def identify() -> tuple[str, str]:
        """Each worker as a host of its own."""
        name = f"host-{get_worker().name}"
        return name, name

    monkeypatch.setattr(on_host, "identify", identify)
    said: list[str] = []
    with connected("local", 2) as client:
        assert fleet_of(client, tmp_path / "data", binary, pair_suite, said, 600).run() == []
    hosts = Dataset(tmp_path / "data").hosts().sort("started_at")
    assert hosts["host"].value_counts().sort("host")["count"].to_list() == [2, 2], said
    began, took = hosts["started_at"].to_list(), hosts["elapsed_ns"].to_list()
    for nth in range(1, hosts.height):
        assert (began[nth] - began[nth - 1]).total_seconds() >= took[nth - 1] / 1e9
    cases = Dataset(tmp_path / "data").scan("cases").filter(~pl.col("floor")).collect()
    assert cases["case"].unique().to_list() == ["tcp latency 64 remote"]
    assert any("run 1 of 2 to host-" in line for line in said), said


def test_one_host_is_no_pair(tmp_path: Path, binary: Path, pair_suite: Path) -> None:
    said: list[str] = []
    with connected("local", 1) as client:
        problems = fleet_of(client, tmp_path / "data", binary, pair_suite, said, 3).run()
    assert len(problems) == 1
    assert "no other host to measure to" in problems[0]


def test_the_partner_changes_from_run_to_run_and_is_free() -> None:
    fleet = Fleet.__new__(Fleet)
    fleet.runs = 3
    hosts = [Host(name, workers=[name], left=3) for name in "abcd"]
    fleet.hosts = {host.name: host for host in hosts}
    first = hosts[0]
    partners = []
    for left in [3, 2, 1]:
        first.left = left
        partner = fleet.partner(first)
        partners.append(partner.name if partner else None)
    assert partners == ["b", "c", "d"]
    hosts[3].serves = hosts[2]
    partner = fleet.partner(first)
    assert partner is not None
    assert partner.name == "b"
    for host in hosts[1:]:
        host.workers = []
    assert fleet.partner(first) is None
