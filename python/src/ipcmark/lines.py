"""The lines of a results file as types, as far as data frames show them; docs/reference/results.schema.json has all.

Fields that are not named here are skipped unread. Bounds are those of the program, so that nothing computed later
divides by zero or overflows.
"""

from typing import Annotated, Any, Generic, TypeVar

from msgspec import Meta, Struct

FORMAT = "ipcmark-results"
VERSION = 1

LARGEST_COUNT = 1 << 44
Count = Annotated[int, Meta(ge=0, le=LARGEST_COUNT)]
Positive = Annotated[int, Meta(ge=1, le=LARGEST_COUNT)]
Time = Annotated[float, Meta(ge=1e-9, le=float(LARGEST_COUNT))]
Amount = Annotated[float, Meta(ge=0)]

T = TypeVar("T")


class Fact(Struct, Generic[T], omit_defaults=True):
    """A value, or the reason why it is not known."""

    known: T | None = None
    unknown: str | None = None


class Spec(Struct):
    """A mechanism, operation or floor with its parameters, and the programs that are its endpoints, if not ours."""

    name: str
    params: dict[str, str] = {}
    drivers: dict[str, str] = {}

    def __str__(self) -> str:
        client, server = (self.drivers.get(side, "ipcmark") for side in ("client", "server"))
        both = client if client == server else f"{client}+{server}"
        prefix = f"{both}/" if self.drivers else ""
        params = ",".join(f"{name}={value}" for name, value in self.params.items())
        return f"{prefix}{self.name}:{params}" if params else f"{prefix}{self.name}"


class Case(Struct, frozen=True):
    """One thing to measure."""

    workload: str
    placement: str
    endpoints: str
    spec: Spec
    size_bytes: Annotated[int, Meta(ge=0, le=1 << 30)] | None = None
    cpus: dict[str, int] | None = None
    pace: str | None = None
    peers: str | None = None
    inject: str | None = None

    @property
    def key(self) -> str:
        """The text by which messages and comparisons know the case."""
        size = None if self.size_bytes is None else size_text(self.size_bytes)
        threads = "threads" if self.endpoints == "threads" else None
        inject = f"inject={self.inject}" if self.inject else None
        words = [self.workload, size, self.placement, threads, self.pace, self.peers, inject]
        return " ".join([str(self.spec), *(word for word in words if word)])


def size_text(size_bytes: int) -> str:
    """`size_bytes` in the shortest exact form: `64`, `4K`, `1M`."""
    for shift, unit in [(30, "G"), (20, "M"), (10, "K")]:
        if size_bytes and size_bytes % (1 << shift) == 0:
            return f"{size_bytes >> shift}{unit}"
    return str(size_bytes)


class Cpu(Struct):
    """A logical CPU."""

    id: int


class Topology(Struct):
    """The CPUs that the run could use."""

    cpus: list[Cpu]


class Host(Struct):
    """The host, as far as it bears on a result."""

    name: Fact[str]
    kernel: Fact[str]
    arch: str
    cpu: Fact[str]
    topology: Topology
    caches_bytes: Fact[dict[str, int]]
    governor: Fact[str]
    smt: Fact[bool]
    mitigations: Fact[dict[str, str]]
    virtualisation: Fact[str]
    clocksource: Fact[str]
    transparent_huge_pages: Fact[str]
    tick_ns: Fact[int]
    load: Fact[float]
    memory_bytes: Fact[int]
    limits: dict[str, Fact[str]]


class Tool(Struct):
    """What made the file."""

    version: str
    profile: str


class Settings(Struct):
    """For how long, and how precisely."""

    suite: str | None
    precision: float
    time_ns: int


class Plan(Struct):
    """The cases to measure, floors first."""

    cases: list[Case]


class Floor(Struct):
    """A floor as first measured."""

    case: Case


class Header(Struct, tag="header"):
    """The first line."""

    tool: Tool
    run: str
    started_at: str
    command: list[str]
    host: Host
    settings: Settings
    plan: Plan
    floors: list[Floor]


class Reading(Struct):
    """Two speed readings, just before and just after the timed iterations."""

    before_ns: Time
    after_ns: Time


class Speed(Struct):
    """The speed readings of a slice."""

    client: Reading
    server: Reading | None = None
    pair: Reading | None = None


class Usage(Struct):
    """What an endpoint used."""

    cpu_ns: Count
    voluntary_switches: Count
    involuntary_switches: Count


class Sample(Struct):
    """What one slice measured."""

    round: int
    started_ns: int
    iterations: Positive
    elapsed_ns: Time
    client: Usage
    trial: Annotated[int, Meta(ge=0, lt=(1 << 20) - 1)] = 0
    speed: Speed | None = None
    stolen_ns: Count | None = None
    floor_ns: Time | None = None
    server: Usage | None = None
    lost: Count | None = None


class Estimate(Struct):
    """A median and its 95% interval."""

    median: Amount
    interval: tuple[Amount, Amount] | None = None


class SpeedSummary(Struct):
    """What the speed readings say of a case."""

    median_speed: float
    as_found_ns: Amount | None = None


class Quantiles(Struct):
    """Quantiles of single iterations."""

    p50_ns: int
    p99_ns: int
    p999_ns: int


class PerIteration(Struct):
    """What an endpoint used in an iteration."""

    cpu_ns: float
    voluntary_switches: float
    involuntary_switches: float


class Summary(Struct):
    """The summary of a case."""

    trials: int
    iterations: int
    iteration_ns: Estimate
    client: PerIteration
    slices: int = 0
    server: PerIteration | None = None
    speed: SpeedSummary | None = None
    bytes_per_s: Estimate | None = None
    quantiles: Quantiles | None = None
    floor_multiple: Estimate | None = None


class SampleLine(Struct, tag="sample"):
    """One slice of a case, by its place in the plan."""

    case: Annotated[int, Meta(ge=0)]
    sample: Sample


class Record(Struct, tag="record"):
    """The result of one case."""

    case: Case
    outcome: str | Annotated[dict[str, dict[str, Any]], Meta(min_length=1, max_length=1)]
    summary: Summary | None = None
    floor: bool = False
    samples: list[Sample] = []


class Profile(Struct, tag="profile"):
    """A trial with a probe. Data frames do not show it."""


class RunEnd(Struct, tag="end"):
    """The last line."""

    interrupted: bool
    rounds: int
    elapsed_ns: int
    stolen: Fact[float]


class Mark(Struct):
    """What tells lines and files apart, read before the rest."""

    type: str | None = None
    format: str | None = None
    version: int | None = None


Body = SampleLine | Record | Profile | RunEnd
