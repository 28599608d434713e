"""Results files as data frames: cases, trials, slices, hosts. It recomputes no summary.

The rules for broken files, and the words of the errors, are those of the program (crates/model/src/results.rs).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from os import PathLike, fspath
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import polars as pl

from ipcmark import columns
from ipcmark.invalid import Invalid, printable
from ipcmark.lines import (
    FORMAT,
    VERSION,
    Body,
    Case,
    Header,
    Mark,
    Profile,
    Record,
    RunEnd,
    Sample,
    SampleLine,
)

LONGEST_LINE_BYTES = 64 << 20
KINDS = ["sample", "record", "profile", "end"]


@dataclass(frozen=True)
class Results:
    """What results files hold. Every frame has the columns `run` and `host`, by which frames are joined."""

    cases: pl.DataFrame
    trials: pl.DataFrame
    slices: pl.DataFrame
    hosts: pl.DataFrame
    notes: list[str]

    def frames(self) -> dict[str, pl.DataFrame]:
        """The frames by their names."""
        return {"cases": self.cases, "trials": self.trials, "slices": self.slices, "hosts": self.hosts}

    def to_parquet(self, directory: str | PathLike[str]) -> None:
        """Writes each frame to `directory` as a Parquet file of its name."""
        Path(directory).mkdir(parents=True, exist_ok=True)
        for name, frame in self.frames().items():
            frame.write_parquet(Path(directory) / f"{name}.parquet")


def read(files: str | PathLike[str] | Iterable[str | PathLike[str]]) -> Results:
    """The contents of one results file or several. Raises `Invalid` for one that cannot be used."""
    paths = [files] if isinstance(files, str | PathLike) else list(files)
    return frames_of([read_file(Path(fspath(path))) for path in paths])


@dataclass
class File:
    """One results file."""

    name: str
    header: Header
    records: list[Record] = field(default_factory=list)
    end: RunEnd | None = None
    notes: list[str] = field(default_factory=list)


def read_file(path: Path) -> File:
    """The file at `path`."""
    try:
        with path.open("rb") as opened:
            return _Reader(str(path), opened).file()
    except OSError as error:
        problem = f"{path} cannot be read: {error.strerror} (os error {error.errno})"
        raise Invalid(problem, "name a file that exists and that you may read") from None


class _Reader:
    """Reads a file line by line."""

    def __init__(self, name: str, opened: BinaryIO) -> None:
        self.name = name
        self.opened = opened
        self.number = 0
        self.body = msgspec.json.Decoder(Body)

    def file(self) -> File:
        file = File(self.name, self.header())
        waiting: dict[int, list[Sample]] = {}
        ended: dict[str, int] = {}
        places = {case.key: place for place, case in enumerate(file.header.plan.cases)}
        for line, is_last in self.lines():
            if file.end is not None:
                raise self.broken("it stands after the end of the results")
            try:
                self.take(self.body.decode(line), file, waiting, ended, places)
            except msgspec.ValidationError as error:
                raise self.broken(self.meaning(line, error)) from None
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                if not is_last:
                    raise self.broken(f"it is not JSON: {error}") from None
                file.notes.append(
                    f"line {self.number}, the last, was cut off and is left out: the run stopped while it wrote it"
                )
        file.records += unfinished(file.header, waiting)
        return file

    def take(
        self,
        body: Body,
        file: File,
        waiting: dict[int, list[Sample]],
        ended: dict[str, int],
        places: dict[str, int],
    ) -> None:
        """Puts one line where it belongs."""
        match body:
            case SampleLine(case=place, sample=sample):
                cases = file.header.plan.cases
                if place >= len(cases):
                    raise self.broken(f"its case is at place {place} of a plan of {len(cases)} cases")
                if cases[place].key in ended:
                    raise self.broken("it is a sample of a case that had its record before")
                waiting.setdefault(place, []).append(sample)
            case Record(case=case):
                if case.key in ended:
                    raise self.broken(f"it repeats the case '{printable(case.key)}' of line {ended[case.key]}")
                ended[case.key] = self.number
                samples = waiting.pop(places.get(case.key, -1), [])
                if samples and body.samples:
                    raise self.broken("it has samples, and its case had some in lines of their own")
                body.samples = body.samples or samples
                file.records.append(body)
            case RunEnd():
                file.end = body
            case Profile():
                pass

    def lines(self) -> Iterator[tuple[bytes, bool]]:
        """The lines that are not blank, and whether nothing follows."""
        current = self.line()
        while current:
            number, following = self.number, self.line()
            if current.strip():
                self.number, after = number, self.number
                yield current, not current.endswith(b"\n") or not following
                self.number = after
            current = following

    def line(self) -> bytes:
        line = self.opened.readline(LONGEST_LINE_BYTES + 1)
        self.number += 1
        if len(line) > LONGEST_LINE_BYTES:
            raise self.broken("the line is longer than 64M bytes")
        return line

    def header(self) -> Header:
        """The first line. Its first byte is read before the rest: an endless device is refused at once."""
        first = self.opened.read(1)
        if not first:
            raise self.refused("is empty", "the run may have failed: measure again")
        if first != b"{":
            raise self.foreign("it does not begin with a JSON object")
        line = first + self.line()
        try:
            mark = msgspec.json.decode(line, type=Mark)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            if line.startswith(b'{"type":"header"') and not line.endswith(b"\n"):
                raise self.refused("was cut off within its header", "nothing was measured: measure again") from None
            raise self.foreign(f"it is not JSON: {error}") from None
        self.check(mark)
        try:
            return msgspec.json.decode(line, type=Header)
        except msgspec.ValidationError as error:
            raise self.broken(str(error)) from None

    def check(self, mark: Mark) -> None:
        """Refuses the file if `mark`, of its first line, is not that of a results file that can be read here."""
        if mark.type in KINDS:
            raise self.refused(
                "has no header: its first line is not the first line of a results file",
                "restore the first line, or measure again",
            )
        if mark.format is None:
            raise self.foreign("its first line names no format")
        if mark.format != FORMAT:
            raise self.foreign(f"its format is '{printable(mark.format)}'")
        if mark.version is None:
            raise self.foreign("its first line names no version")
        if mark.version != VERSION:
            newer = mark.version > VERSION
            remedy = "read it with the ipcmark that wrote it, or " + (
                "a later one" if newer else "measure again with this one"
            )
            raise self.refused(
                f"has version {mark.version} of the results format; this ipcmark reads version {VERSION}",
                remedy,
            )

    @staticmethod
    def meaning(line: bytes, error: msgspec.ValidationError) -> str:
        """What is wrong with a line that is JSON."""
        try:
            kind = msgspec.json.decode(line, type=Mark).type
        except msgspec.DecodeError:
            return str(error)
        if kind is None:
            return "it has no type"
        if kind == "header":
            return "there is a second header"
        return str(error) if kind in KINDS else f"its type '{printable(kind)}' is unknown"

    def refused(self, problem: str, remedy: str) -> Invalid:
        return Invalid(f"'{printable(self.name)}' {problem}", remedy)

    def foreign(self, why: str) -> Invalid:
        return self.refused(f"is not a results file of ipcmark: {why}", "give a file that 'ipcmark run' wrote")

    def broken(self, why: str) -> Invalid:
        return self.refused(
            f"is broken at line {self.number}: {why}",
            "take the file from its source again, or remove that line if you can do without it",
        )


def unfinished(header: Header, waiting: dict[int, list[Sample]]) -> Iterator[Record]:
    """What was measured of cases that have no record, in the order of the plan."""
    floors = {floor.case.key for floor in header.floors}
    for place in sorted(waiting):
        case: Case = header.plan.cases[place]
        yield Record(case, "interrupted", samples=waiting[place], floor=case.key in floors)


def frames_of(files: list[File]) -> Results:
    """The frames of `files`."""
    rows: dict[str, list[dict[str, Any]]] = {"cases": [], "slices": [], "hosts": []}
    for file in files:
        of_run = {"run": file.header.run, "host": file.header.host.name.known}
        rows["hosts"].append(of_run | columns.host(file.name, file.header, file.end))
        for record in file.records:
            of_case = of_run | {"case": record.case.key}
            rows["cases"].append(of_case | columns.case(record))
            rows["slices"] += [of_case | columns.slice_of(sample) for sample in record.samples]
    slices = pl.DataFrame(rows["slices"], schema=columns.SLICES)
    return Results(
        cases=pl.DataFrame(rows["cases"], schema=columns.CASES),
        trials=trials_of(slices),
        slices=slices,
        hosts=pl.DataFrame(rows["hosts"], schema=columns.HOSTS).with_columns(
            pl.col("started_at").map_elements(moment, return_dtype=pl.Datetime("us", "UTC"))
        ),
        notes=[f"{file.name}: {note}" for file in files for note in file.notes],
    )


def trials_of(slices: pl.DataFrame) -> pl.DataFrame:
    """The trials of `slices`: the median slice of each."""
    return slices.group_by("run", "host", "case", "trial", maintain_order=True).agg(
        slices=pl.len(),
        started_ns=pl.col("started_ns").min(),
        iterations=pl.col("iterations").sum(),
        iteration_ns=pl.col("iteration_ns").median(),
        floor_ns=pl.col("floor_ns").median(),
        stolen_ns=pl.col("stolen_ns").sum(),
    )


def moment(text: str) -> datetime | None:
    """A moment of RFC 3339; `None` for another text."""
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except ValueError:
        return None
