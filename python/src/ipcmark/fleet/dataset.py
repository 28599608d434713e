"""The directory of a fleet: the results files as they came, and a Parquet data set of them.

    fleet.json                       what is measured, by which program
    results/RUN.jsonl                each results file
    cases/suite=…/host=…/kernel=…/day=…/RUN.parquet, likewise trials, slices, hosts

A run counts once its file under `hosts` is there, which is written last. So a fleet that was cut off goes on
where it was.
"""

import fcntl
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import quote

import msgspec
import polars as pl

from ipcmark.invalid import Invalid
from ipcmark.results import Results, read

KEYS = ["suite", "host", "kernel", "day"]


@dataclass(frozen=True)
class Order:
    """What each host is to do. A data set is of one order."""

    suite: str
    suite_text: str | None
    binary_sha256: str
    arguments: list[str]
    peer_via: str | None = None


class Dataset:
    """The data set in a directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    @contextmanager
    def held_for(self, order: Order) -> Iterator[None]:
        """Holds the directory for `order`, alone; goes on with what lies there if it is of the same order."""
        self.directory.mkdir(parents=True, exist_ok=True)
        lock = os.open(self.directory, os.O_RDONLY)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.check(order)
            yield
        except BlockingIOError:
            problem = f"{self.directory} is in use by another ipcmark-fleet"
            raise Invalid(problem, "wait for it, or give another directory with --output") from None
        finally:
            os.close(lock)

    def check(self, order: Order) -> None:
        """Notes the order, or refuses one that differs from that noted before."""
        file = self.directory / "fleet.json"
        if not file.exists():
            if any(self.directory.iterdir()):
                raise Invalid(f"{self.directory} is not empty and holds no fleet's results", "give another directory")
            write(file, msgspec.json.format(msgspec.json.encode(asdict(order))))
        elif differs := differences(file, order):
            raise Invalid(
                f"{self.directory} holds results of another order: {', '.join(differs)}",
                "give another directory with --output, or the same arguments and program as before",
            )

    def done(self) -> Counter[str]:
        """How many runs of each host are here."""
        frame = self.hosts() if any(self.directory.glob("hosts/**/*.parquet")) else None
        return Counter() if frame is None else Counter(frame["host"].to_list())

    def add(self, results: bytes, host: str) -> int:
        """Keeps a results file, measured on `host`; returns how many cases it has."""
        arrived = self.directory / "results" / "arrived.jsonl"
        arrived.parent.mkdir(exist_ok=True)
        write(arrived, results)
        frames = read(arrived)
        about = frames.hosts.row(0, named=True)
        if not about["ended"]:
            raise Invalid(f"the results of {host} have no end", "the run was cut off; it is repeated")
        file = arrived.with_name(f"{about['run']}.jsonl")
        arrived.rename(file)
        day = about["started_at"].date().isoformat() if about["started_at"] else "unknown"
        keys = dict(zip(KEYS, [about["suite"] or "by-hand", host, about["kernel"] or "unknown", day], strict=True))
        self.write_frames(frames, about["run"], keys)
        return frames.cases.height

    def write_frames(self, frames: Results, run: str, keys: dict[str, str]) -> None:
        """Adds the frames of one run. `hosts` comes last and makes it count."""
        path = Path(*(f"{key}={quote(value, safe='')}" for key, value in keys.items()), f"{run}.parquet")
        for name, frame in frames.frames().items():
            target = self.directory / name / path
            target.parent.mkdir(parents=True, exist_ok=True)
            unfinished = target.with_suffix(".unfinished")
            frame.drop(KEYS, strict=False).write_parquet(unfinished)
            unfinished.rename(target)

    def scan(self, name: str) -> pl.LazyFrame:
        """The table `name` of the data set."""
        return pl.scan_parquet(
            self.directory / name / "**/*.parquet",
            hive_partitioning=True,
            hive_schema=dict.fromkeys(KEYS, pl.String),
        )

    def hosts(self) -> pl.DataFrame:
        """The runs and their hosts."""
        if not any(self.directory.glob("hosts/*")):
            raise Invalid(f"{self.directory} holds no results of a fleet", "give what ipcmark-fleet run wrote")
        return self.scan("hosts").collect()


def differences(file: Path, order: Order) -> list[str]:
    """In what the order of `file` differs from `order`."""
    try:
        before = msgspec.json.decode(file.read_bytes(), type=Order)
    except msgspec.DecodeError as error:
        raise Invalid(f"{file} is broken: {error}", "give another directory") from None
    now, then = asdict(order), asdict(before)
    return [name for name in now if now[name] != then[name]]


def write(file: Path, content: bytes) -> None:
    """Writes `file` as a whole or not at all."""
    unfinished = file.with_suffix(".unfinished")
    unfinished.write_bytes(content)
    unfinished.rename(file)
