"""A fleet on Slurm: the real daemons, on one machine, with a key, a configuration and ports made for the test."""

import getpass
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import dask
import pytest

from ipcmark.fleet import clusters
from ipcmark.fleet.dataset import Dataset

CONFIGURATION = """\
ClusterName=one
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmUser={user}
SlurmdUser={user}
AuthInfo=socket={home}/munge.socket
StateSaveLocation={home}/state
SlurmdSpoolDir={home}/spool
SlurmctldPidFile={home}/slurmctld.pid
SlurmdPidFile={home}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} RealMemory=1000
PartitionName=all Nodes=ALL Default=YES
"""
PATH = f"{os.environ['PATH']}:/usr/sbin:/sbin"


@pytest.fixture
def home() -> Iterator[Path]:
    """A directory with the configuration of a Slurm of one node, which runs."""
    programs = {name: shutil.which(name, path=PATH) for name in ["munged", "slurmctld", "slurmd", "sinfo"]}
    absent = [name for name, path in programs.items() if path is None]
    if absent:
        pytest.skip(f"{', '.join(absent)} cannot be run here; install munge slurmd slurmctld slurm-client")
    # All of its path must be open to others: the daemons insist.
    with tempfile.TemporaryDirectory() as made:
        directory = Path(made)
        directory.chmod(0o755)
        configure(directory)
        key = directory / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o600)
        files = [f"--{name}-file={directory}/munge.{name}" for name in ["key", "pid", "log", "seed"]]
        commands = [
            [programs["munged"], "--foreground", "--force", f"--socket={directory}/munge.socket", *files],
            [programs["slurmctld"], "-D", "-f", f"{directory}/slurm.conf"],
            [programs["slurmd"], "-D", "-f", f"{directory}/slurm.conf"],
        ]
        daemons: list[subprocess.Popen[bytes]] = []
        try:
            for command in commands:
                log = (directory / f"{len(daemons)}.log").open("wb")
                daemons.append(subprocess.Popen([str(word) for word in command], stdout=log, stderr=log))
                time.sleep(0.5)
            await_node(directory)
            yield directory
        finally:
            for daemon in reversed(daemons):
                daemon.terminate()
                daemon.wait()


def configure(home: Path) -> None:
    """Writes the configuration."""
    with socket.socket() as first, socket.socket() as second:
        for free in [first, second]:
            free.bind(("127.0.0.1", 0))
        ports = [free.getsockname()[1] for free in [first, second]]
    for name in ["state", "spool"]:
        (home / name).mkdir()
    host = socket.gethostname().split(".")[0]
    text = CONFIGURATION.format(host=host, home=home, user=getpass.getuser(), ports=ports, cpus=os.cpu_count())
    (home / "slurm.conf").write_text(text)


def await_node(home: Path) -> None:
    """Waits until the node takes jobs; skips where the daemons do not come to that."""
    for _ in range(60):
        done = subprocess.run(["sinfo", "-h", "-o", "%T"], env=environment(home), capture_output=True, check=False)
        if done.stdout.strip() == b"idle":
            return
        time.sleep(0.25)
    logs = " ".join((home / f"{at}.log").read_text(errors="replace")[-200:] for at in range(3))
    pytest.skip(f"Slurm does not start here: {logs!r}")


def environment(home: Path) -> dict[str, str]:
    return os.environ | {"SLURM_CONF": f"{home}/slurm.conf", "DASK_JOBQUEUE__SLURM__MEMORY": "500MB"}


def test_a_fleet_on_slurm_measures_its_node(home: Path, binary: Path, suite: Path) -> None:
    command = [sys.executable, "-m", "ipcmark.fleet.cli", "run", str(suite), "--cluster", "slurm", "--workers", "1"]
    options = ["--output", str(home / "data"), "--binary", str(binary), "--runs", "1"]
    done = subprocess.run(
        [*command, *options], cwd=home, env=environment(home), capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert Dataset(home / "data").hosts().height == 1
    # The job ends with the fleet.
    for _ in range(100):
        if not subprocess.run(["squeue", "-h"], env=environment(home), capture_output=True, check=True).stdout:
            return
        time.sleep(0.1)
    pytest.fail("the job of the worker is still there")


def test_jobs_have_the_settings_for_measuring() -> None:
    with dask.config.set({"jobqueue.slurm.memory": "500MB", "jobqueue.slurm.job-script-prologue": ["module load own"]}):
        cluster = clusters.of_jobs()
        try:
            lines = cluster.job_script().splitlines()
        finally:
            cluster.close()
    assert "module load own" in lines
    assert "export DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED=False" in lines
