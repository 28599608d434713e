"""The page of a fleet: an analysis as one HTML file that opens by itself. It computes no statistic.

What results say reaches the page as JSON in an element that no browser runs. The page's policy lets one script run,
ours, by its hash, and nothing be fetched.
"""

import base64
import hashlib
import html
import re
from importlib.resources import files
from typing import Any

import msgspec
import numpy as np
import polars as pl

from ipcmark.fleet.dataset import Dataset
from ipcmark.fleet.statistics import (
    FALSE_SHARE,
    Analysis,
    Array,
    Flags,
    analyse,
    facts_of_outliers,
    table_of,
)
from ipcmark.invalid import Invalid

# Two standard errors, nearly: half of a 95% interval.
HALF = 1.96
MOST_CELLS = 3
MOST_FACTS = 5
# The logarithm of the ratio that has the map's darkest colour.
DARKEST = float(np.log(1.25))
METHOD = (
    "A host's value in a case is the median of its runs. A robust regression on kernel and processor gives what these "
    "change; what it leaves of a host is tested against Student's t with the tails that all cells together have. "
    f"Of all differences named, at most {2 * FALSE_SHARE:.0%} are expected to be false (Benjamini and Hochberg, "
    "for hosts, cells and groups each). The variances are those of a random-effects model (DerSimonian and Laird)."
)


def page(dataset: Dataset, suite: str | None, command: str) -> str:
    """The page of `dataset`."""
    hosts = of_suite(dataset.hosts(), suite)
    cases = (
        dataset.scan("cases")
        .filter(
            pl.col("suite") == hosts["suite"][0],
            ~pl.col("floor"),
            pl.col("outcome").is_in(["settled", "unsettled"]),
            pl.col("iteration_ns") > 0,
        )
        .select("run", "host", "kernel", "case", "iteration_ns")
        .collect()
    )
    if cases.is_empty():
        raise Invalid(f"{dataset.directory} has no case that was measured", "see the outcomes in its cases")
    hosts = hosts.join(cases.select("run").unique(), on="run", how="semi")
    return html_page(data_of(analyse(table_of(cases, hosts)), hosts, command))


def of_suite(hosts: pl.DataFrame, suite: str | None) -> pl.DataFrame:
    """The runs of `suite`, or of the only one."""
    suites = sorted(hosts["suite"].unique())
    if suite is None and len(suites) > 1:
        raise Invalid(f"there are runs of several suites: {', '.join(suites)}", "choose one with --suite")
    chosen = hosts.filter(pl.col("suite") == (suite or suites[0]))
    if chosen.is_empty():
        raise Invalid(f"there are no runs of the suite '{suite}'", f"there are: {', '.join(suites)}")
    return chosen


def html_page(data: dict[str, Any]) -> str:
    """The template with `data` in it."""
    part = {name: files("ipcmark.fleet").joinpath("page", name).read_text() for name in PARTS}
    script = part["fleet.js"]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    json = msgspec.json.encode(data).decode()
    values = {
        "policy": f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; "
        "base-uri 'none'; form-action 'none'",
        "title": html.escape(data["title"]),
        "style": part["page.css"] + part["fleet.css"],
        "data": re.sub("[<>&\u2028\u2029]", lambda found: f"\\u{ord(found[0]):04x}", json),
        "script": script,
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda found: values[found[1]], part["fleet.html"])


PARTS = ["fleet.html", "fleet.css", "fleet.js", "page.css"]


def data_of(analysis: Analysis, runs: pl.DataFrame, command: str) -> dict[str, Any]:
    """All that the script needs."""
    table, names = analysis.table, host_names(analysis.table.hosts)
    half = HALF * analysis.cell_error
    number = analysis.cell_differs.sum(axis=1)
    outlying = np.flatnonzero(analysis.host_differs | analysis.cell_differs.any(axis=1))
    # The most conspicuous first: those that differ overall, by how much, then those with most cases.
    order = sorted(
        outlying,
        key=lambda at: (
            not analysis.host_differs[at],
            -abs(analysis.overall[at]) * analysis.host_differs[at],
            -number[at],
        ),
    )
    facts = special_facts(analysis, runs, [int(at) for at in order])
    at_host, at_case = np.nonzero(analysis.cell_differs)
    suite = runs["suite"][0]
    return {
        "title": f"How {len(names)} hosts compare in {suite}",
        "lead": lead(analysis, runs),
        "notices": analysis.notes,
        "answers": answers(analysis),
        "method": METHOD,
        "command": command,
        "scale": f"from ×{np.exp(-DARKEST):.2f} (faster) to ×{np.exp(DARKEST):.2f} (slower) and beyond",
        "darkest": DARKEST,
        "ratio": base64.b64encode(analysis.ratio.astype("<f4").tobytes()).decode(),
        "cells": [[int(h), int(c), number_of(half[h, c])] for h, c in zip(at_host, at_case, strict=True)],
        "hosts": [
            {
                "name": name,
                "kernel": kernel,
                "cpu": cpu,
                "runs": int(analysis.runs[at].max()),
                "overall": number_of(analysis.overall[at]),
                "half": number_of(HALF * analysis.overall_error[at]),
                "differs": bool(analysis.host_differs[at]),
                "count": int(number[at]),
            }
            for at, (name, (_, kernel, cpu)) in enumerate(zip(names, table.hosts.rows(), strict=True))
        ],
        "cases": [
            {
                "key": key,
                "ns": number_of(np.exp(analysis.centre[at])),
                "time": time_text(float(np.exp(analysis.centre[at]))),
                "runs": number_of(analysis.between_runs[at]),
                "hosts": number_of(analysis.between_hosts[at]),
                "least": number_of(analysis.least[at + 1]),
                "count": int(analysis.cell_differs[:, at].sum()),
            }
            for at, key in enumerate(table.cases)
        ],
        "outliers": [
            {
                "host": int(at),
                "facts": facts[int(at)],
                "cells": most(analysis.own[at], half[at], analysis.cell_differs[at]),
            }
            for at in order
        ],
        "groups": [
            {
                "factor": {"cpu": "processor"}.get(group.factor, group.factor),
                "level": group.level,
                "against": group.against,
                "hosts": group.hosts,
                "overall": number_of(group.ratio[0]),
                "half": number_of(HALF * group.error[0]),
                "differs": bool(group.differs[0]),
                "count": int(group.differs[1:].sum()),
                "cells": most(group.ratio[1:], HALF * group.error[1:], group.differs[1:]),
            }
            for group in analysis.groups
        ],
    }


def most(own: Array, half: Array, differs: Flags) -> list[list[Any]]:
    """The cases that differ the most."""
    found = np.flatnonzero(differs)
    found = found[np.argsort(-np.abs(own[found]), kind="stable")][:MOST_CELLS]
    return [[int(at), number_of(own[at]), number_of(half[at])] for at in found]


def special_facts(analysis: Analysis, runs: pl.DataFrame, outliers: list[int]) -> dict[int, list[str]]:
    """What is special about each of `outliers`, in words, by its place."""
    rows = analysis.table.hosts.with_row_index("at")
    latest = runs.sort("started_at").unique(["host", "kernel"], keep="last")
    facts = (
        latest.join(rows.select("host", "kernel", "at"), on=["host", "kernel"], nulls_equal=True)
        .select(pl.col("at").cast(pl.String).alias("host"), "facts")
        .explode("facts")
        .unnest("facts")
        .filter(pl.col("fact") != "name")
        .select("host", "fact", "value")
    )
    words: dict[int, list[str]] = {at: [] for at in outliers}
    special = facts_of_outliers(facts, [str(at) for at in outliers])
    for host, fact, value, hosts, of_outliers, usual in special.rows():
        of_host = words[int(host)]
        if len(of_host) < MOST_FACTS:
            of_host.append(
                f"{fact} is {value or 'unknown'}, mostly {usual or 'unknown'}: "
                f"{hosts} of {len(rows)} hosts, {of_outliers} of them listed here"
            )
    return words


def lead(analysis: Analysis, runs: pl.DataFrame) -> str:
    """What was measured, in a line."""
    days = sorted(runs["day"].unique())
    when = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    return (
        f"{runs['run'].n_unique()} runs, {len(analysis.table.cases)} cases, "
        f"{runs['kernel'].n_unique()} kernels, {runs['cpu'].n_unique()} kinds of processors, {when}"
    )


def answers(analysis: Analysis) -> list[tuple[str, str, str]]:
    """What a reader came for: what, the answer, and what bears on it."""
    hosts, cells = int(analysis.host_differs.sum()), analysis.cell_differs
    size = np.exp(np.abs(analysis.overall[analysis.host_differs]))
    differing = [f"{group.level}" for group in analysis.groups if group.differs.any()]
    runs, between = median_share(analysis.between_runs), median_share(analysis.between_hosts)
    told = f"by up to ×{size.max():.2f}" if hosts else "none can be told from the others"
    if np.isfinite(analysis.least[0]):
        told += f"; from ×{np.exp(analysis.least[0]):.2f} one would be found"
    return [
        ("hosts that differ overall", f"{hosts} of {len(analysis.overall)}", told),
        (
            "hosts that differ in single cases",
            f"{int(cells.any(axis=1).sum())}",
            f"{int(cells.sum())} of {int(np.isfinite(analysis.own).sum())} cells",
        ),
        (
            "kernels and processors that differ",
            f"{len(differing)}",
            ", ".join(differing) or f"of {len(analysis.groups)} compared",
        ),
        (
            "variation of the median case",
            f"{between} between hosts",
            f"{runs} between runs of a host",
        ),
    ]


def median_share(deviations: Array) -> str:
    """The median of those of `deviations` that are known, as a percentage."""
    known = deviations[np.isfinite(deviations)]
    return f"{np.median(known):.1%}" if known.size else "unknown"


def host_names(hosts: pl.DataFrame) -> list[str]:
    """What the rows are called: the host, with its kernel where it was measured with several."""
    several = set(hosts.filter(pl.col("host").is_duplicated())["host"])
    return [f"{host} ({kernel})" if host in several else host for host, kernel, _ in hosts.rows()]


def time_text(ns: float) -> str:
    """A time with three digits, as the program writes it."""
    for factor, unit in [(1e9, "s"), (1e6, "ms"), (1e3, "µs")]:
        if ns >= factor:
            return f"{ns / factor:.3g} {unit}"
    return f"{ns:.3g} ns"


def number_of(value: Any) -> float | None:
    """`value` for JSON, which has no other numbers than finite ones."""
    return float(value) if np.isfinite(value) else None
