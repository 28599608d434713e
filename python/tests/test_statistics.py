"""Differences that were put in are found, false ones are few, and variances are those that were put in."""

import warnings
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from statsmodels.regression.mixed_linear_model import MixedLM

import fleet_maker
from ipcmark.fleet.statistics import Analysis, Table, analyse

HOSTS, CASES = 150, 150


def found(fleet: fleet_maker.MadeFleet, analysis: Analysis) -> tuple[set[str], set[tuple[str, str]], set[str]]:
    """The hosts, the cells and the cases of the slow kernel that are said to differ."""
    hosts = fleet.hosts["host"].to_list()
    cells = {(hosts[host], fleet.cases[case]) for host, case in zip(*np.nonzero(analysis.cell_differs), strict=True)}
    kernel = next(
        (group for group in analysis.groups if fleet.slow_kernel in (group.level, group.against)),
        analysis.groups[0],
    )
    on_kernel = {case for case, differs in zip(fleet.cases, kernel.differs[1:], strict=True) if differs}
    return (
        {host for host, differs in zip(hosts, analysis.host_differs, strict=True) if differs},
        cells,
        on_kernel,
    )


def table(fleet: fleet_maker.MadeFleet) -> Table:
    return Table(fleet.hosts.select("host", "kernel", "cpu"), fleet.cases, fleet.log_ns)


def test_known_differences_are_found_and_false_ones_are_at_most_one_in_a_hundred() -> None:
    discoveries = false = put_in = 0
    for seed in range(3):
        fleet = fleet_maker.make(HOSTS, CASES, seed=seed)
        hosts, cells, on_kernel = found(fleet, analyse(table(fleet)))
        assert fleet.slow_hosts <= hosts
        assert fleet.slow_on_kernel <= on_kernel
        assert len(cells & fleet.slow_cells) >= 0.9 * len(fleet.slow_cells)
        discoveries += len(hosts) + len(cells)
        false += len(hosts - fleet.slow_hosts) + len(cells - fleet.slow_cells)
        put_in += len(fleet.slow_cells)
    assert put_in > 30
    assert false <= 0.01 * discoveries, (false, discoveries)


def test_where_nothing_differs_next_to_nothing_is_found() -> None:
    rng = np.random.default_rng(3)
    log_ns = rng.normal(0, 0.02, (100, 3, 100)) + rng.normal(0, 0.03, (100, 1, 1))
    hosts = pl.DataFrame({"host": [str(at) for at in range(100)], "kernel": ["a", "b"] * 50, "cpu": ["x"] * 100})
    analysis = analyse(Table(hosts, [str(at) for at in range(100)], log_ns))
    assert analysis.cell_differs.sum() + analysis.host_differs.sum() <= 1
    assert sum(group.differs.sum() for group in analysis.groups) <= 1


def test_variances_are_those_that_were_put_in_and_those_of_a_mixed_model() -> None:
    rng = np.random.default_rng(5)
    hosts, runs, cases = 60, 3, 30
    log_ns = rng.normal(0, 0.02, (hosts, runs, cases)) + rng.normal(0, 0.05, (hosts, 1, cases))
    frame = pl.DataFrame({"host": [str(at) for at in range(hosts)], "kernel": ["a"] * hosts, "cpu": ["x"] * hosts})
    analysis = analyse(Table(frame, [str(at) for at in range(cases)], log_ns))
    assert np.median(analysis.between_runs) == pytest.approx(0.02, rel=0.05)
    assert np.median(analysis.between_hosts) == pytest.approx(0.05, rel=0.1)
    mixed = MixedLM(log_ns[:, :, 0].ravel(), np.ones(hosts * runs), groups=np.repeat(np.arange(hosts), runs)).fit()
    assert analysis.between_runs[0] == pytest.approx(np.sqrt(mixed.scale), rel=0.05)
    assert analysis.between_hosts[0] == pytest.approx(np.sqrt(mixed.cov_re[0, 0]), rel=0.1)


def test_a_run_out_of_line_is_not_a_host_that_differs() -> None:
    rng = np.random.default_rng(6)
    log_ns = rng.normal(0, 0.02, (50, 3, 40))
    log_ns[7, 1] += 1
    frame = pl.DataFrame({"host": [str(at) for at in range(50)], "kernel": ["a"] * 50, "cpu": ["x"] * 50})
    analysis = analyse(Table(frame, [str(at) for at in range(40)], log_ns))
    assert not analysis.host_differs.any()
    assert not analysis.cell_differs.any()


@pytest.mark.parametrize(("hosts", "runs"), [(1, 1), (2, 3), (5, 1)])
def test_few_hosts_are_shown_without_a_verdict(hosts: int, runs: int) -> None:
    log_ns = np.random.default_rng(1).normal(0, 0.02, (hosts, runs, 3))
    log_ns[0, :, 1] = np.nan
    frame = pl.DataFrame({"host": [str(at) for at in range(hosts)], "kernel": [None] * hosts, "cpu": ["x"] * hosts})
    frame = frame.with_columns(pl.col("kernel").cast(pl.String))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        analysis = analyse(Table(frame, ["a", "b", "c"], log_ns))
    assert "too few" in analysis.notes[-1]
    assert not analysis.cell_differs.any()


def test_what_cannot_be_told_apart_is_said() -> None:
    log_ns = np.random.default_rng(1).normal(0, 0.02, (40, 2, 5))
    frame = pl.DataFrame({"host": [str(at) for at in range(40)], "kernel": ["a", "b"] * 20, "cpu": ["x", "y"] * 20})
    analysis = analyse(Table(frame, list("abcde"), log_ns))
    assert [group.factor for group in analysis.groups] == ["kernel"]
    assert "cannot be told apart" in analysis.notes[0]


def test_the_data_set_gives_the_table_that_was_written(tmp_path: Path) -> None:
    from ipcmark.fleet.statistics import table_of

    fleet = fleet_maker.make(4, 6)
    dataset = fleet_maker.write(fleet, tmp_path)
    back = table_of(dataset.scan("cases").collect(), dataset.hosts())
    assert back.hosts["host"].to_list() == fleet.hosts["host"].to_list()
    order = [fleet.cases.index(case) for case in back.cases]
    assert np.allclose(back.log_ns, fleet.log_ns[:, :, order])
