"""A fleet by ssh: a real sshd on loopback, with keys made for the test."""

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import missing
from ipcmark.fleet.dataset import Dataset

CONFIG = """\
Host first second third
  HostName 127.0.0.1
  Port {port}
  IdentityFile {home}/key
  UserKnownHostsFile {home}/known_hosts
"""
SERVER = """\
ListenAddress 127.0.0.1:{port}
HostKey {home}/host_key
AuthorizedKeysFile {home}/key.pub
PidFile none
StrictModes no
UsePAM no
PermitRootLogin yes
"""


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A home directory from which `first`, `second` and `third` are this host, by ssh."""
    sshd = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
    if sshd is None:
        missing("sshd (openssh-server)", "a fleet by ssh")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    for name in ["key", "host_key"]:
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / name], check=True)
    host_key = " ".join((tmp_path / "host_key.pub").read_text().split()[:2])
    (tmp_path / "known_hosts").write_text(f"[127.0.0.1]:{port} {host_key}\n")
    (tmp_path / ".ssh").mkdir(mode=0o700)
    (tmp_path / ".ssh/config").write_text(CONFIG.format(port=port, home=tmp_path))
    (tmp_path / "sshd_config").write_text(SERVER.format(port=port, home=tmp_path))
    # As root sshd wants this directory, which the system's own service would have made.
    separation = Path("/run/sshd")
    made = os.geteuid() == 0 and not separation.exists()
    if made:
        separation.mkdir(mode=0o755)
    server = subprocess.Popen([str(sshd), "-D", "-e", "-f", str(tmp_path / "sshd_config")])
    yield tmp_path
    server.terminate()
    server.wait()
    if made:
        separation.rmdir()


def test_a_fleet_by_ssh_measures_each_host_once(home: Path, binary: Path, suite: Path) -> None:
    hosts = home / "hosts.txt"
    hosts.write_text("first  # the scheduler\nsecond\nthird\n")
    command = [sys.executable, "-c", "from ipcmark.fleet.cli import main; main()", "run", str(suite)]
    options = [
        "--cluster",
        f"ssh:{hosts}",
        "--output",
        str(home / "data"),
        "--binary",
        str(binary),
        "--runs",
        "1",
    ]
    done = subprocess.run(
        [*command, *options],
        env=os.environ | {"HOME": str(home)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    # Both workers are on one host, which is measured once.
    assert "1 of 1 runs are done" in done.stderr
    assert Dataset(home / "data").hosts().height == 1
