"""The coordinator of a fleet: which host is to run what, what came of it, and what is to be tried again.

One run at a time on a host, however many workers it has: the coordinator keeps at most one in flight for each boot id,
and the run holds a name in the host's kernel, which keeps other fleets off too. A run between two hosts occupies both.
"""

import contextlib
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import cloudpickle
from distributed import Client, Future, wait

from ipcmark.fleet import host as on_host
from ipcmark.fleet.dataset import Dataset, Order
from ipcmark.invalid import Invalid

cloudpickle.register_pickle_by_value(on_host)

POLL_S = 0.5
# More at once would fill the scheduler's memory with copies of the program.
MOST_INSTALLS = 8
MOST_FAILURES = 3
ANSWER_S = 60.0


def whole(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` in a form that is sent with its code: Dask would send the name of one that lies in a module."""

    def call(*of: Any) -> Any:
        return function(*of)

    return call


@dataclass
class Host:
    """A host of the fleet."""

    name: str
    workers: list[str] = field(default_factory=list)
    left: int = 0
    failures: int = 0
    last_seen: float = field(default_factory=time.monotonic)
    attempt: "Attempt | None" = None
    problem: str | None = None
    # The host whose run has its server here.
    serves: "Host | None" = None

    @property
    def is_open(self) -> bool:
        """Whether something is still to be done there."""
        return self.left > 0 and self.problem is None

    @property
    def is_free(self) -> bool:
        """Whether nothing runs there, of its own or of another host."""
        return self.attempt is None and self.serves is None and bool(self.workers)


@dataclass
class Attempt:
    """Something that a worker has been asked for."""

    what: str
    worker: str
    future: Future
    deadline: float
    # The host that has the server of the run, which nothing else uses meanwhile.
    peer: Host | None = None


@dataclass
class Limits:
    """How long things may take, in seconds."""

    run_s: float = 900.0
    lost_s: float = 60.0


class Fleet:
    """The state of one `ipcmark-fleet run`."""

    def __init__(
        self,
        client: Client,
        dataset: Dataset,
        order: Order,
        binary: Path,
        runs: int,
        limits: Limits,
        say: Callable[[str], None],
        peer_via: str | None = None,
    ) -> None:
        self.peer_via = peer_via
        self.began = time.monotonic()
        self.client = client
        self.dataset = dataset
        self.order = order
        self.packed = zlib.compress(binary.read_bytes(), 1)
        self.runs = runs
        self.limits = limits
        self.say = say
        self.before = dataset.done()
        self.hosts: dict[str, Host] = {}
        self.meeting: dict[str, Attempt] = {}
        self.met: set[str] = set()
        self.installed: set[str] = set()

    def run(self) -> list[str]:
        """Measures on every host until nothing is left to do; returns what could not be done."""
        try:
            while True:
                self.meet()
                for host in self.hosts.values():
                    self.advance(host)
                attempts = [host.attempt for host in self.hosts.values() if host.attempt]
                futures = [attempt.future for attempt in [*attempts, *self.meeting.values()]]
                if not futures and not any(host.is_open for host in self.hosts.values()):
                    break
                if not futures:
                    time.sleep(POLL_S)
                    continue
                with contextlib.suppress(TimeoutError):
                    wait(futures, timeout=POLL_S, return_when="FIRST_COMPLETED")
        finally:
            self.client.cancel([host.attempt.future for host in self.hosts.values() if host.attempt])
        if not self.hosts:
            return ["no worker came, or none could be asked what host it is on"]
        return [f"{host.name}: {host.problem}" for host in self.hosts.values() if host.problem]

    def meet(self) -> None:
        """Asks new workers which host they are on; forgets those that are gone."""
        present = set(self.client.scheduler_info(n_workers=-1)["workers"])
        for worker in sorted(present - self.met):
            self.met.add(worker)
            self.meeting[worker] = self.ask("identify", worker, ANSWER_S, on_host.identify)
        for worker, attempt in list(self.meeting.items()):
            if worker not in present or time.monotonic() > attempt.deadline:
                self.say(f"{worker} did not answer")
                attempt.future.cancel()
                del self.meeting[worker]
            elif attempt.future.done():
                del self.meeting[worker]
                self.greet(worker, attempt.future)
        for host in self.hosts.values():
            host.workers = [worker for worker in host.workers if worker in present]
            if host.workers:
                host.last_seen = time.monotonic()

    def greet(self, worker: str, answer: Future) -> None:
        """Adds a worker to its host."""
        if answer.status != "finished":
            self.say(f"{worker} cannot say what host it is on: {answer.exception()}")
            return
        name, boot = answer.result()
        if boot not in self.hosts:
            left = max(0, self.runs - self.before[name])
            self.hosts[boot] = Host(name, left=left)
            if any(other.name == name for other_boot, other in self.hosts.items() if other_boot != boot):
                self.hosts[boot].problem = "another host has this name: give it one of its own"
            self.say(f"{name}: {left} of {self.runs} runs to do")
        self.hosts[boot].workers.append(worker)

    def advance(self, host: Host) -> None:
        """Takes what has come from `host`, and asks it for what is next."""
        if host.attempt:
            problem = self.outcome(host, host.attempt)
            if problem == "":
                return
            self.judge(host, host.attempt, problem)
        if not host.is_open or host.serves:
            return
        if not host.workers:
            if time.monotonic() - host.last_seen > self.limits.lost_s:
                host.problem = f"lost: no worker of it for {self.limits.lost_s:.0f} s"
                self.say(f"{host.name}: {host.problem}")
            return
        self.start(host)

    def start(self, host: Host) -> None:
        """Asks a worker of `host` for the next thing; after a failure another one, if there is one."""
        worker = host.workers[host.failures % len(host.workers)]
        order = self.order
        if worker in self.installed:
            limit_s = self.limits.run_s
            peer = self.partner(host) if self.peer_via else None
            if self.peer_via and not peer:
                self.wait_for_partner(host)
                return
            options = [*order.arguments, *self.reaching(peer)]
            arguments = (order.binary_sha256, order.suite, order.suite_text, options, limit_s)
            host.attempt = self.ask("run", worker, limit_s + ANSWER_S, on_host.measure, *arguments)
            if peer:
                host.attempt.peer, peer.serves = peer, host
            to = f" to {peer.name}" if peer else ""
            self.say(f"{host.name}: run {self.runs - host.left + 1} of {self.runs}{to} began")
        elif self.installing() < MOST_INSTALLS:
            arguments_of_install = (self.packed, order.binary_sha256)
            host.attempt = self.ask("install", worker, 5 * ANSWER_S, on_host.install, *arguments_of_install)

    def partner(self, host: Host) -> Host | None:
        """The host that is to have the server: another in each run, if there are others. `None`: none is free."""
        hosts = list(self.hosts.values())
        # Those that come after it, and then those before.
        at = hosts.index(host)
        others = hosts[at + 1 :] + hosts[:at]
        if not others:
            return None
        done = (self.runs - host.left) % len(others)
        return next((other for other in others[done:] + others[:done] if other.is_free), None)

    def wait_for_partner(self, host: Host) -> None:
        """Gives `host` up when there was no other host for as long as one may be away."""
        others = [other.last_seen for other in self.hosts.values() if other is not host]
        if time.monotonic() - max([self.began, *others]) > self.limits.lost_s:
            host.problem = f"no other host to measure to for {self.limits.lost_s:.0f} s"
            self.say(f"{host.name}: {host.problem}")

    def reaching(self, peer: Host | None) -> list[str]:
        """The options by which a run has its server on `peer`."""
        if peer is None or self.peer_via is None:
            return []
        return ["--server-via", self.peer_via.replace("{host}", peer.name), "--push"]

    def installing(self) -> int:
        """How many hosts are being sent the program."""
        return sum(1 for host in self.hosts.values() if host.attempt and host.attempt.what == "install")

    def ask(self, what: str, worker: str, limit_s: float, function: Callable[..., Any], *of: Any) -> Attempt:
        """Has `worker` call a function. A run is told its key, by which it knows whether it is still wanted."""
        key = f"ipcmark-{what}-{uuid4()}"
        given = (key, *of) if what == "run" else of
        future = self.client.submit(
            whole(function), *given, key=key, workers=[worker], allow_other_workers=False, pure=False
        )
        return Attempt(what, worker, future, time.monotonic() + limit_s)

    def outcome(self, host: Host, attempt: Attempt) -> str | None:
        """What went wrong with `attempt`: an empty text while it goes on, `None` if nothing did."""
        if not attempt.future.done():
            if attempt.worker not in host.workers:
                return "its worker died"
            return "it did not answer in time" if time.monotonic() > attempt.deadline else ""
        if attempt.future.status != "finished":
            return str(attempt.future.exception()) if attempt.future.status == "error" else "it was cancelled"
        if attempt.what == "install":
            self.installed.add(attempt.worker)
            return None
        results, problem, is_final = attempt.future.result()
        if problem:
            host.failures = MOST_FAILURES if is_final else host.failures
            return str(problem)
        try:
            cases = self.dataset.add(results, host.name)
        except Invalid as error:
            return error.problem
        host.left -= 1
        done, of = self.progress()
        self.say(f"{host.name}: {cases} cases measured; {done} of {of} runs are done")
        return None

    def judge(self, host: Host, attempt: Attempt, problem: str | None) -> None:
        """Ends an attempt; after too many failures in a row the host is given up."""
        attempt.future.cancel()
        host.attempt = None
        if attempt.peer:
            attempt.peer.serves = None
        if problem is None:
            host.failures = 0 if attempt.what == "run" else host.failures
            return
        host.failures += 1
        if host.failures > MOST_FAILURES:
            host.problem = problem
        elif host.failures == MOST_FAILURES:
            host.problem = f"given up after {host.failures} attempts: {problem}"
        self.say(f"{host.name}: the {attempt.what} failed: {problem}" + ("" if host.problem else "; again"))

    def progress(self) -> tuple[int, int]:
        """How many runs are done, of how many."""
        return (
            sum(self.runs - host.left for host in self.hosts.values()),
            self.runs * len(self.hosts),
        )
