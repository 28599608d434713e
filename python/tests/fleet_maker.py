"""Makes fleets of any size out of real runs, with differences put in that are known.

`real_runs.csv` has eight real runs on one host: run, case, iteration_ns. How a made run deviates is a mixture, by
random weights, of how the real ones deviate from their mean: so each case varies as it really does, and cases vary
together as they really do. A made run's deviation is then stretched at random, so that it has the tails of Student's t
with 5 degrees of freedom. Hosts differ at random on top of that, and then as is put in.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from ipcmark.fleet.dataset import Dataset
from ipcmark.fleet.statistics import Array
from ipcmark.results import Results

REAL_RUNS = Path(__file__).with_name("real_runs.csv")
KERNELS = ["6.1.0-40-amd64", "6.8.0-52-generic", "6.12.9"]
# Real runs of the file vary by a tenth: the host was a noisy virtual machine, and they took 12 s.
HOST_RATIO, CELL_RATIO, KERNEL_RATIO = 1.4, 2.5, 1.15
CPUS = ["AMD EPYC 7B13", "Intel(R) Xeon(R) Platinum 8481C"]


@dataclass
class MadeFleet:
    """A fleet, and the truth about it."""

    log_ns: Array
    cases: list[str]
    hosts: pl.DataFrame
    slow_hosts: set[str] = field(default_factory=set)
    slow_cells: set[tuple[str, str]] = field(default_factory=set)
    slow_kernel: str = KERNELS[2]
    slow_on_kernel: set[str] = field(default_factory=set)


def make(hosts: int, cases: int, runs: int = 3, seed: int = 1) -> MadeFleet:
    """A fleet of so many hosts and cases."""
    rng = np.random.default_rng(seed)
    real = pl.read_csv(REAL_RUNS).pivot(on="run", index="case", values="iteration_ns").drop_nulls().sort("case")
    logs = real.drop("case").to_numpy().T
    logs = np.log(logs)
    deviations = logs - logs.mean(axis=0)
    # Cases beyond the real ones repeat them under another name, with deviations of their own.
    copies = -(-cases // logs.shape[1])
    stretch = np.sqrt(3 / rng.chisquare(5, (hosts, runs, copies, 1)))
    weights = rng.normal(0, 1 / np.sqrt(len(logs) - 1), (hosts, runs, copies, len(logs))) * stretch
    log_ns = (logs.mean(axis=0) + weights @ deviations).reshape(hosts, runs, -1)[:, :, :cases]
    names = [f"{case} #{copy}" if copy else case for copy in range(copies) for case in real["case"]][:cases]
    log_ns = log_ns + rng.normal(0, 0.03, (hosts, 1, 1)) + rng.normal(0, 0.01, (hosts, 1, cases))
    table = pl.DataFrame(
        {
            "host": [f"node{at:04}" for at in range(hosts)],
            "kernel": rng.choice(KERNELS, hosts),
            "cpu": rng.choice(CPUS, hosts),
            "governor": ["performance"] * hosts,
            "huge_pages": ["madvise"] * hosts,
        }
    )
    fleet = MadeFleet(log_ns, names, table)
    put_differences_in(fleet, rng)
    return fleet


def put_differences_in(fleet: MadeFleet, rng: np.random.Generator) -> None:
    """Slow hosts with a governor of their own, hosts slow in some cases, and a kernel that is slow in some."""
    hosts, _, cases = fleet.log_ns.shape
    names = fleet.hosts["host"].to_list()
    chosen = rng.permutation(hosts)
    slow, particular = (
        chosen[: max(1, hosts // 100)],
        chosen[hosts // 100 + 1 : hosts // 100 + 1 + max(2, hosts // 50)],
    )
    fleet.log_ns[slow] += np.log(HOST_RATIO)
    fleet.slow_hosts = {names[at] for at in slow}
    for host in particular:
        for case in rng.permutation(cases)[: max(2, cases // 20)]:
            fleet.log_ns[host, :, case] += np.log(CELL_RATIO)
            fleet.slow_cells.add((names[host], fleet.cases[case]))
    on_kernel = rng.permutation(cases)[: max(2, cases // 40)]
    fleet.slow_on_kernel = {fleet.cases[case] for case in on_kernel}
    of_kernel = np.flatnonzero((fleet.hosts["kernel"] == fleet.slow_kernel).to_numpy())
    fleet.log_ns[np.ix_(of_kernel, np.arange(fleet.log_ns.shape[1]), on_kernel)] += np.log(KERNEL_RATIO)
    fleet.hosts = fleet.hosts.with_columns(
        governor=pl.when(pl.col("host").is_in(sorted(fleet.slow_hosts)))
        .then(pl.lit("powersave"))
        .otherwise("governor"),
        huge_pages=pl.when(pl.col("host").is_in([names[at] for at in particular]))
        .then(pl.lit("always"))
        .otherwise("huge_pages"),
    )


def write(fleet: MadeFleet, directory: Path) -> Dataset:
    """`fleet` as the data set that `ipcmark-fleet run` would have written, with its cases and hosts alone."""
    dataset = Dataset(directory)
    empty = pl.DataFrame()
    for at, about in enumerate(fleet.hosts.rows(named=True)):
        for run in range(fleet.log_ns.shape[1]):
            dataset.write_frames(
                Results(cases_of(fleet, at, run), empty, empty, host_of(about, f"{about['host']}-{run}"), []),
                f"{about['host']}-{run}",
                {"suite": "default", "host": about["host"], "kernel": about["kernel"], "day": "2026-11-23"},
            )
    return dataset


def cases_of(fleet: MadeFleet, host: int, run: int) -> pl.DataFrame:
    """The cases of a run."""
    return pl.DataFrame({"case": fleet.cases, "iteration_ns": np.exp(fleet.log_ns[host, run])}).with_columns(
        run=pl.lit(f"{fleet.hosts['host'][host]}-{run}"), floor=pl.lit(value=False), outcome=pl.lit("settled")
    )


def host_of(about: dict[str, Any], run: str) -> pl.DataFrame:
    """The row of a run's host."""
    facts = {
        "governor": about["governor"],
        "transparent_huge_pages": about["huge_pages"],
        "clocksource": "tsc",
    }
    rows = [{"fact": fact, "value": value, "unknown": None} for fact, value in facts.items()]
    return pl.DataFrame(
        {"run": [run], "cpu": [about["cpu"]], "started_at": ["2026-11-23T10:00:00Z"], "facts": [rows]},
        schema_overrides={"facts": pl.List(pl.Struct({"fact": pl.String, "value": pl.String, "unknown": pl.String}))},
    ).with_columns(pl.col("started_at").str.to_datetime(time_zone="UTC"))
