"""What runs on a host of the fleet, within a Dask worker. It knows nothing of the fleet.

These functions are sent to workers whole (by value): a host needs Python and `distributed`, but not this package. So
this file imports the standard library and `distributed` alone, and takes and returns plain values.
"""

import contextlib
import hashlib
import os
import platform
import signal
import socket
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path

from distributed import get_worker

# Has the kernel end the run when its worker dies, whatever killed the worker: option 1 is PR_SET_PDEATHSIG.
GUARD = "import ctypes, os, sys; ctypes.CDLL(None).prctl(1, 15); os.execv(sys.argv[1], sys.argv[1:])"
# A name in the kernel, which nobody owns and which is gone with the last process that holds it.
LOCK = "\0ipcmark-fleet"
# Where a pod is told the name of its node: its own name is another one each time.
HOST_VARIABLE = "IPCMARK_FLEET_HOST"
# The program's exit status for a suite or an option that it does not know.
BAD_INPUT = 2


def identify() -> tuple[str, str]:
    """The host's name, and the id of its kernel's boot, which workers in containers of one host share."""
    name = os.environ.get(HOST_VARIABLE) or platform.node()
    return name, Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def install(packed: bytes, digest: str) -> None:
    """Puts the program where only this worker uses it. Dask removes the directory with the worker."""
    program = _program(digest)
    program.write_bytes(zlib.decompress(packed))
    program.chmod(0o700)
    _check(program, digest)


def measure(
    key: str, digest: str, suite: str, suite_text: str | None, arguments: list[str], limit_s: float
) -> tuple[bytes, str | None, bool]:
    """Runs the suite once. Returns the results file, what went wrong, and whether that would happen again."""
    program = _program(digest)
    _check(program, digest)
    until = time.monotonic() + limit_s
    with _only_run_on_host(until) as lock, tempfile.TemporaryDirectory(dir=program.parent) as directory:
        results, errors = Path(directory, "results.jsonl"), Path(directory, "errors.txt")
        if suite_text is not None:
            suite = str(Path(directory, "suite.toml"))
            Path(suite).write_text(suite_text)
        command = [sys.executable, "-c", GUARD, str(program), "run", suite, *arguments, "-o", str(results)]
        with errors.open("wb") as stderr:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                # The run itself holds the lock: it is free when the run has ended, not when the worker has died.
                pass_fds=[lock.fileno()],
                start_new_session=True,
            )
            problem = _watched(process, key, until, limit_s)
        text = errors.read_text(errors="replace").strip()
        if problem is None and process.returncode not in (0, 1):
            problem = f"ipcmark ended with {process.returncode}: {text[-2000:]}"
        return (results.read_bytes() if results.exists() else b""), problem, process.returncode == BAD_INPUT


def _program(digest: str) -> Path:
    return Path(get_worker().local_directory, f"ipcmark-{digest[:16]}")


def _check(program: Path, digest: str) -> None:
    found = hashlib.sha256(program.read_bytes()).hexdigest()
    if found != digest:
        raise OSError(f"{program} has the hash {found}, not {digest}: something changed it on its way or here")


@contextlib.contextmanager
def _only_run_on_host(until: float):  # type: ignore[no-untyped-def]
    """Waits until no other run is going on on this host, of whatever fleet."""
    with socket.socket(socket.AF_UNIX) as lock:
        while True:
            try:
                lock.bind(LOCK)
                break
            except OSError as error:
                if time.monotonic() > until:
                    raise TimeoutError("another run was going on on this host all the time") from error
                time.sleep(0.1)
        yield lock


def _watched(process: subprocess.Popen[bytes], key: str, until: float, limit_s: float) -> str | None:
    """Waits for the end of `process`; ends it when it takes too long or is not wanted any more."""
    tasks = get_worker().state.tasks
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.2)
            return None
        task = tasks.get(key)
        unwanted = task is None or task.state == "cancelled"
        if unwanted or time.monotonic() > until:
            _end(process)
            return "nobody waits for it any more" if unwanted else f"it took longer than {limit_s:.0f} s"


def _end(process: subprocess.Popen[bytes]) -> None:
    """Has the run end by itself, as after Ctrl-C; kills it if it does not."""
    for number, allowed_s in [(signal.SIGINT, 10), (signal.SIGKILL, 10)]:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(allowed_s)
            return
