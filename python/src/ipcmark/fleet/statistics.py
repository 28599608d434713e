"""Which hosts and kernels differ, and by how much: a table of times, hosts by runs by cases, to an analysis. No files.

All is of logarithms of times, so that differences are ratios. For each case (docs/reference/python.md says why):

- A host's value is the median of its runs: one run out of line moves it little.
- What the host takes more in the median case is its *overall* ratio; what a case takes beyond that is *its own*.
- A robust regression on kernel and processor (Huber's, hosts as units) gives what these change; what it leaves of a
  host, over the robust deviation of hosts, is tested against Student's t. Its degrees of freedom come from all cells
  together, because tails of real hosts are heavier than normal.
- False discoveries are controlled by Benjamini and Hochberg's procedure, for hosts, cells and groups each as a family.
- The variances between runs and between hosts are those of a random-effects model (DerSimonian and Laird).
"""

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import optimize, stats
from statsmodels.robust.norms import HuberT
from statsmodels.robust.robust_linear_model import RLM
from statsmodels.robust.scale import HuberScale
from statsmodels.stats.meta_analysis import combine_effects
from statsmodels.tools.sm_exceptions import ConvergenceWarning

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]

# Half of the 1% of false discoveries that are promised: the share in one report varies about what is controlled.
FALSE_SHARE = 0.005
# With fewer hosts beyond the groups that are fitted, no deviation of hosts can be estimated.
FEWEST_FREE = 8
# A kernel or processor of fewer hosts has no effect of its own: such hosts are judged one by one.
FEWEST_OF_GROUP = 3
FACTORS = ["kernel", "cpu"]


@dataclass(frozen=True)
class Table:
    """Logarithms of times: hosts by runs by cases; what was not measured is not a number."""

    hosts: pl.DataFrame
    """A row for each host and kernel, in the order of the first axis: host, kernel, cpu."""
    cases: list[str]
    log_ns: Array


@dataclass(frozen=True)
class Group:
    """What a kernel, or a processor, changes against the most common one."""

    factor: str
    level: str
    against: str
    hosts: int
    ratio: Array
    """For overall, then for each case beyond that: the logarithm of the ratio."""
    error: Array
    differs: Flags


@dataclass(frozen=True)
class Analysis:
    """What the page says. Arrays of hosts by cases hold logarithms of ratios to the fleet's median host."""

    table: Table
    centre: Array
    """Of each case: the logarithm of the median host's time."""
    ratio: Array
    overall: Array
    overall_error: Array
    """The standard error of each host's overall ratio, by how its runs differ."""
    own: Array
    cell_error: Array
    """The standard error of each cell, by how the runs of a host differ."""
    least: Array
    """For overall, then for each case: the smallest difference of a host that would have been found."""
    host_differs: Flags
    cell_differs: Flags
    between_runs: Array
    """Of each case: the standard deviation of logarithms between runs of a host, and between hosts."""
    between_hosts: Array
    runs: NDArray[np.int64]
    """Of each host and case: how many."""
    groups: list[Group] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def table_of(cases: pl.DataFrame, hosts: pl.DataFrame) -> Table:
    """The table of `cases` (run, host, kernel, case, iteration_ns) on `hosts` (host, kernel, cpu)."""
    keys = ["host", "kernel"]
    rows = hosts.unique(keys).sort(keys).select(*keys, "cpu").with_row_index("row")
    runs = cases.select("run", *keys).unique().sort("run")
    runs = runs.with_columns(place=pl.int_range(pl.len()).over(keys))
    names = cases.select("case").unique().sort("case").with_row_index("column")
    placed = (
        cases.join(names, on="case")
        .join(runs, on=["run", *keys], nulls_equal=True)
        .join(rows, on=keys, nulls_equal=True)
        .select("row", "place", "column", pl.col("iteration_ns").log())
    )
    shape = (rows.height, runs["place"].n_unique(), names.height)
    log_ns = np.full(shape, np.nan)
    at = tuple(placed[name].to_numpy() for name in ["row", "place", "column"])
    log_ns[at] = placed["iteration_ns"].to_numpy()
    return Table(rows.drop("row"), names["case"].to_list(), log_ns)


def analyse(table: Table) -> Analysis:
    """The analysis of `table`."""
    with warnings.catch_warnings():
        # Of cells that nobody measured, medians are not numbers: that is what they are to be.
        warnings.filterwarnings("ignore", "All-NaN slice|Degrees of freedom|Mean of empty slice", RuntimeWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        return analysed(table)


def analysed(table: Table) -> Analysis:
    """The analysis of `table`."""
    value = np.nanmedian(table.log_ns, axis=1)
    centre = np.nanmedian(value, axis=0)
    ratio = value - centre
    overall = np.nanmedian(ratio, axis=1)
    own = ratio - overall[:, None]
    runs = np.isfinite(table.log_ns).sum(axis=1)
    design = Design.of(table.hosts)
    tested = np.column_stack([overall, own])
    fit = fitted(design.matrix, tested)
    differs, notes = np.zeros(tested.shape, dtype=bool), list(design.notes)
    free = tested.shape[0] - design.matrix.shape[1]
    least = np.full(tested.shape[1], np.nan)
    if free >= FEWEST_FREE:
        tail = Tail.of(fit.left / fit.scale, free)
        for part in [slice(0, 1), slice(1, None)]:
            differs[:, part], cut = discoveries(tail.p(fit.left[:, part] / fit.scale[part]))
            least[part] = tail.z(cut) * fit.scale[part]
        groups = design.groups(fit, free)
    else:
        groups = []
        notes.append(f"{tested.shape[0]} hosts are too few to say which differ: the page shows their ratios alone")
    of_runs, of_hosts = components(table.log_ns, fit.left, differs[:, 1:])
    return Analysis(
        table=table,
        centre=centre,
        ratio=ratio,
        overall=overall,
        overall_error=standard_error(np.nanmedian(table.log_ns - centre, axis=2, keepdims=True))[:, 0],
        own=own,
        cell_error=standard_error(table.log_ns),
        least=least,
        host_differs=differs[:, 0],
        cell_differs=differs[:, 1:],
        between_runs=of_runs,
        between_hosts=of_hosts,
        runs=runs,
        groups=groups,
        notes=notes,
    )


@dataclass(frozen=True)
class Fit:
    """Robust regressions, one for each column: overall, then each case."""

    effect: Array
    """By column of the design and of what was fitted."""
    error: Array
    left: Array
    """What the regression leaves of each host."""
    scale: Array
    """The robust standard deviation of that, of each column."""


def fitted(design: Array, columns: Array) -> Fit:
    """The regression of each of `columns` on `design`, over the hosts that have a value."""
    width = design.shape[1], columns.shape[1]
    effect, error = np.full(width, np.nan), np.full(width, np.nan)
    left, scale = np.full(columns.shape, np.nan), np.full(columns.shape[1], np.nan)
    for at in range(columns.shape[1]):
        here = np.isfinite(columns[:, at])
        # Groups that nobody of these hosts is in have no effect here.
        used = design[here].any(axis=0)
        matrix, values = design[here][:, used], columns[here, at]
        if here.sum() - used.sum() < FEWEST_FREE or np.ptp(values) == 0:
            left[here, at] = values - np.median(values) if here.any() else np.nan
            continue
        result: Any = RLM(values, matrix, M=HuberT()).fit(maxiter=30, tol=1e-6, scale_est=HuberScale())
        effect[used, at], error[used, at] = result.params, result.bse
        left[here, at], scale[at] = result.resid, result.scale
    return Fit(effect, error, left, scale)


@dataclass(frozen=True)
class Tail:
    """How far out hosts are that do not differ: Student's t with the middle that all cells have.

    The middle is that between the median and the 95th percentile, where hosts that differ are few.
    """

    df: float
    unit: float

    @classmethod
    def of(cls, z: Array, free: int) -> "Tail":
        """The tail of deviations `z`, of which `free` are independent in each column."""
        middle, outer = np.quantile(np.abs(z[np.isfinite(z)]), [0.5, 0.95])

        def excess(df: float) -> float:
            return float(stats.t.ppf(0.975, df) / stats.t.ppf(0.75, df) - outer / middle)

        df = optimize.brentq(excess, 1.0, 1e4) if excess(1e4) < 0 < excess(1.0) else 1e4
        df = min(df, free)
        return cls(df, middle / float(stats.t.ppf(0.75, df)))

    def p(self, z: Array) -> Array:
        """The probability of deviations as large as `z`."""
        return np.asarray(2 * stats.t.sf(np.abs(z) / self.unit, self.df))

    def z(self, p: float) -> float:
        """The deviation that has the probability `p`."""
        return float(stats.t.isf(p / 2, self.df)) * self.unit


def discoveries(p: Array) -> tuple[Flags, float]:
    """Which hypotheses are refuted, with the promised share of false ones, and from what probability on."""
    found = np.zeros(p.shape, dtype=bool)
    known = np.isfinite(p)
    if known.any():
        found[known] = stats.false_discovery_control(p[known]) <= FALSE_SHARE
    return found, FALSE_SHARE * max(1, int(found.sum())) / max(1, int(known.sum()))


def components(log_ns: Array, left: Array, outliers: Flags) -> tuple[Array, Array]:
    """The standard deviations between runs of a host and between hosts, for each case; hosts that differ are left out.

    `left` is what the regression left of overall and of each case.
    """
    of_run, error = between_runs(log_ns), standard_error(log_ns)
    of_host = np.full(log_ns.shape[2], np.nan)
    for case in range(log_ns.shape[2]):
        hosts = np.isfinite(left[:, case + 1]) & ~outliers[:, case]
        if hosts.sum() >= 2 and of_run[case] > 0:
            effect = left[hosts, 0] + left[hosts, case + 1]
            of_host[case] = combine_effects(effect, error[hosts, case] ** 2, method_re="dl").tau2
    return of_run, np.sqrt(np.maximum(of_host, 0))


def between_runs(log_ns: Array) -> Array:
    """The standard deviation between runs of a host, over all hosts, for each case."""
    within = np.nanvar(log_ns, axis=1, ddof=1)
    free = np.maximum(np.isfinite(log_ns).sum(axis=1) - 1, 0)
    total = free.sum(axis=0)
    sum_of_squares = np.where(free > 0, within * free, 0).sum(axis=0)
    return np.sqrt(np.where(total > 0, sum_of_squares / np.maximum(total, 1), np.nan))


def standard_error(log_ns: Array) -> Array:
    """The standard error of the median of the runs of a host, for each host and case."""
    runs = np.isfinite(log_ns).sum(axis=1)
    # The variance of the median of n normal values over that of their mean, which is 1 of one and of two.
    over_mean = np.where(runs > 2, (np.pi / 2) * runs / (runs + np.pi / 2 - 1), 1)
    return np.asarray(between_runs(log_ns) * np.sqrt(over_mean / np.maximum(runs, 1)))


@dataclass(frozen=True)
class Design:
    """The regression's columns: one for all hosts, and one for each kernel and processor but the most common."""

    matrix: Array
    names: list[tuple[str, str, str, int]]
    """Of each column after the first: factor, level, the most common level, how many hosts."""
    notes: list[str]

    @classmethod
    def of(cls, hosts: pl.DataFrame) -> "Design":
        """The design of `hosts`."""
        columns, names, notes = [np.ones(hosts.height)], [], []
        for factor in FACTORS:
            levels = hosts[factor].drop_nulls().value_counts(sort=True, name="hosts").rows()
            for level, count in levels[1:]:
                column = (hosts[factor] == level).fill_null(value=False).to_numpy().astype(float)
                if count < FEWEST_OF_GROUP:
                    continue
                wider = np.column_stack([*columns, column])
                if np.linalg.matrix_rank(wider) < wider.shape[1]:
                    notes.append(
                        f"{factor} {level}: all its hosts differ in more than that, which cannot be told apart"
                    )
                    continue
                columns.append(column)
                names.append((factor, level, levels[0][0], count))
        return cls(np.column_stack(columns), names, notes)

    def groups(self, fit: Fit, free: int) -> list[Group]:
        """The effects of kernels and processors, tested as one family."""
        effect, error = fit.effect[1:], fit.error[1:]
        differs, _ = discoveries(2 * stats.t.sf(np.abs(effect / error), free))
        return [
            Group(*name, ratio=effect[at], error=error[at], differs=differs[at]) for at, name in enumerate(self.names)
        ]


def facts_of_outliers(facts: pl.DataFrame, outliers: list[str]) -> pl.DataFrame:
    """What is special about `outliers`: facts (host, fact, value) that few hosts share where most agree.

    With how many hosts have the value, how many of them are outliers, and what most hosts have.
    """
    most_rare, least_common = 0.1, 0.5
    hosts = facts["host"].n_unique()
    counts = facts.group_by("fact", "value").agg(hosts=pl.len(), outliers=pl.col("host").is_in(outliers).sum())
    usual = counts.sort("hosts", "value", descending=True).group_by("fact", maintain_order=True).first()
    usual = usual.filter(pl.col("hosts") >= least_common * hosts).select("fact", usual="value")
    rare = counts.filter(pl.col("hosts") <= most_rare * hosts).join(usual, on="fact")
    special = facts.filter(pl.col("host").is_in(outliers)).join(rare, on=["fact", "value"], nulls_equal=True)
    return special.sort("host", pl.col("outliers") / pl.col("hosts"), "fact", descending=[False, True, False])
