"""The columns of the frames: what each line of a results file is as a row. It reads no file."""

from typing import Any

import polars as pl
from msgspec import to_builtins

from ipcmark.lines import Estimate, Fact, Header, Host, Record, RunEnd, Sample, Usage

RUN = {"run": pl.String, "host": pl.String}
FACTS = pl.List(pl.Struct({"fact": pl.String, "value": pl.String, "unknown": pl.String}))

HOSTS: dict[str, Any] = RUN | {
    "file": pl.String,
    "suite": pl.String,
    "started_at": pl.String,
    "version": pl.String,
    "kernel": pl.String,
    "arch": pl.String,
    "cpu": pl.String,
    "cpus": pl.Int64,
    "ended": pl.Boolean,
    "interrupted": pl.Boolean,
    "rounds": pl.Int64,
    "elapsed_ns": pl.Int64,
    "stolen": pl.Float64,
    "facts": FACTS,
}
CASES: dict[str, Any] = RUN | {
    "case": pl.String,
    "mechanism": pl.String,
    "spec": pl.String,
    "workload": pl.String,
    "size_bytes": pl.Int64,
    "placement": pl.String,
    "floor": pl.Boolean,
    "outcome": pl.String,
    "error": pl.String,
    "achieved": pl.Float64,
    "trials": pl.Int64,
    "slices": pl.Int64,
    "iterations": pl.Int64,
    "iteration_ns": pl.Float64,
    "iteration_low_ns": pl.Float64,
    "iteration_high_ns": pl.Float64,
    "as_found_ns": pl.Float64,
    "bytes_per_s": pl.Float64,
    "p50_ns": pl.Int64,
    "p99_ns": pl.Int64,
    "p999_ns": pl.Int64,
    "floor_multiple": pl.Float64,
    "client_cpu_ns": pl.Float64,
    "server_cpu_ns": pl.Float64,
    "switches": pl.Float64,
}
SLICES: dict[str, Any] = RUN | {
    "case": pl.String,
    "trial": pl.Int64,
    "round": pl.Int64,
    "started_ns": pl.Int64,
    "iterations": pl.Int64,
    "elapsed_ns": pl.Float64,
    "iteration_ns": pl.Float64,
    "floor_ns": pl.Float64,
    "stolen_ns": pl.Int64,
    "lost": pl.Int64,
    "client_before_ns": pl.Float64,
    "client_after_ns": pl.Float64,
    "server_before_ns": pl.Float64,
    "server_after_ns": pl.Float64,
    "pair_before_ns": pl.Float64,
    "pair_after_ns": pl.Float64,
    "client_cpu_ns": pl.Int64,
    "server_cpu_ns": pl.Int64,
    "switches": pl.Int64,
}


def host(file: str, header: Header, end: RunEnd | None) -> dict[str, Any]:
    """The row of a run and its host."""
    return {
        "file": file,
        "suite": header.settings.suite,
        "started_at": header.started_at,
        "version": header.tool.version,
        "kernel": header.host.kernel.known,
        "arch": header.host.arch,
        "cpu": header.host.cpu.known,
        "cpus": len(header.host.topology.cpus),
        "ended": end is not None,
        "interrupted": end.interrupted if end else None,
        "rounds": end.rounds if end else None,
        "elapsed_ns": end.elapsed_ns if end else None,
        "stolen": end.stolen.known if end else None,
        "facts": [
            {"fact": name, "value": text(fact.known), "unknown": fact.unknown}
            for name, fact in facts(header.host).items()
        ],
    }


def facts(host: Host) -> dict[str, Fact[Any]]:
    """What is known of `host`, and what is not and why; maps as one fact for each of their names."""
    flat: dict[str, Fact[Any]] = {"arch": Fact(host.arch), "cpus": Fact(len(host.topology.cpus))}
    for name in host.__struct_fields__:
        fact = getattr(host, name)
        if isinstance(fact, Fact) and isinstance(fact.known, dict):
            flat |= {f"{name}.{key}": Fact(value) for key, value in fact.known.items()}
        elif isinstance(fact, Fact):
            flat[name] = fact
    return flat | {f"limits.{name}": fact for name, fact in host.limits.items()}


def text(value: object) -> str | None:
    """`value` as results files write it."""
    return str(to_builtins(value)).lower() if isinstance(value, bool) else None if value is None else str(value)


def case(record: Record) -> dict[str, Any]:
    """The row of a case."""
    measured = record.case
    outcome = record.outcome
    name, details = next(iter(outcome.items())) if isinstance(outcome, dict) else (outcome, {})
    row = {
        "mechanism": measured.spec.name,
        "spec": str(measured.spec),
        "workload": measured.workload,
        "size_bytes": measured.size_bytes,
        "placement": measured.placement,
        "floor": record.floor,
        "outcome": name,
        "error": details.get("error"),
        "achieved": details.get("achieved"),
    }
    summary = record.summary
    if summary is None:
        return row
    speed, quantiles, ends = summary.speed, summary.quantiles, [summary.client, summary.server]
    low, high = summary.iteration_ns.interval or (None, None)
    return row | {
        "trials": summary.trials,
        "slices": summary.slices,
        "iterations": summary.iterations,
        "iteration_ns": summary.iteration_ns.median,
        "iteration_low_ns": low,
        "iteration_high_ns": high,
        "as_found_ns": speed.as_found_ns if speed else None,
        "bytes_per_s": median(summary.bytes_per_s),
        "p50_ns": quantiles.p50_ns if quantiles else None,
        "p99_ns": quantiles.p99_ns if quantiles else None,
        "p999_ns": quantiles.p999_ns if quantiles else None,
        "floor_multiple": median(summary.floor_multiple),
        "client_cpu_ns": summary.client.cpu_ns,
        "server_cpu_ns": summary.server.cpu_ns if summary.server else None,
        "switches": sum(end.voluntary_switches + end.involuntary_switches for end in ends if end),
    }


def median(estimate: Estimate | None) -> float | None:
    """The median of `estimate`, if there is one."""
    return estimate.median if estimate else None


def slice_of(sample: Sample) -> dict[str, Any]:
    """The row of a slice."""
    row: dict[str, Any] = {
        "trial": sample.trial,
        "round": sample.round,
        "started_ns": sample.started_ns,
        "iterations": sample.iterations,
        "elapsed_ns": sample.elapsed_ns,
        "iteration_ns": sample.elapsed_ns / sample.iterations,
        "floor_ns": sample.floor_ns,
        "stolen_ns": sample.stolen_ns,
        "lost": sample.lost,
        "client_cpu_ns": sample.client.cpu_ns,
        "server_cpu_ns": sample.server.cpu_ns if sample.server else None,
        "switches": switches(sample.client) + (switches(sample.server) if sample.server else 0),
    }
    if sample.speed:
        for name in ["client", "server", "pair"]:
            reading = getattr(sample.speed, name)
            if reading:
                row |= {f"{name}_before_ns": reading.before_ns, f"{name}_after_ns": reading.after_ns}
    return row


def switches(usage: Usage) -> int:
    """All context switches of an endpoint."""
    return usage.voluntary_switches + usage.involuntary_switches
