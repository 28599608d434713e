"""From `--cluster` to a Dask client. Dask makes the clusters."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import dask
from distributed import Client, LocalCluster, SSHCluster

from ipcmark.fleet.host import HOST_VARIABLE
from ipcmark.invalid import Invalid

FORMS = "give local, ssh:FILE, slurm, kubernetes, or the address of a scheduler, as tcp://host:8786"
ARRIVE_S = 300.0
SETTINGS = {
    # Measuring must not be disturbed by sampling of the worker's own stacks, and answers must not be moved about.
    "distributed.worker.profile.enabled": False,
    "distributed.scheduler.work-stealing": False,
    "distributed.scheduler.worker-ttl": "60s",
    # The program is sent as it is: it is as large as it is.
    "distributed.admin.large-graph-warning-threshold": "1GB",
}
# The same for processes that do not inherit the settings of this one, as variables of their environment.
VARIABLES = {"DASK_" + key.upper().replace(".", "__").replace("-", "_"): str(value) for key, value in SETTINGS.items()}
# What Dask's configuration says of pods.
POD_SETTINGS = ["image", "resources", "env", "worker-command", "scheduler-service-type", "idle-timeout"]


@contextlib.contextmanager
def connected(where: str, workers: int | None, python: str | None = None) -> Iterator[Client]:
    """A client of the cluster `where`, with all `workers` there or the wait for them over."""
    with dask.config.set(SETTINGS), contextlib.ExitStack() as stack:
        address = where
        if ":" not in where or where.startswith("ssh:"):
            try:
                cluster, workers = made(where, workers, python)
            except Invalid:
                raise
            except Exception as error:  # Each kind of cluster has its own.
                raise Invalid(
                    f"the cluster {where} cannot be made: {error}", "docs/reference/python.md has what each needs"
                ) from None
            address = stack.enter_context(cluster)
        try:
            client: Client = stack.enter_context(Client(address, timeout="30s"))
        except (OSError, ValueError) as error:
            raise Invalid(f"the scheduler {where} cannot be reached: {error}", FORMS) from None
        with contextlib.suppress(TimeoutError):
            client.wait_for_workers(workers or 1, timeout=ARRIVE_S)
        yield client


def made(where: str, workers: int | None, python: str | None):  # type: ignore[no-untyped-def]
    """The cluster `where`, and how many workers it is to have."""
    if where == "local":
        return LocalCluster(n_workers=workers or 1, threads_per_worker=1, dashboard_address=":0"), workers or 1
    if where.startswith("ssh:"):
        hosts = ssh_hosts(Path(where.removeprefix("ssh:")))
        options = {"nthreads": 1}
        cluster = SSHCluster(
            hosts,
            worker_options=options,
            scheduler_options={"port": 0, "dashboard_address": ":0"},
            remote_python=python,
        )
        return cluster, len(hosts) - 1
    if where not in {"slurm", "kubernetes"}:
        raise Invalid(f"unknown cluster '{where}'", FORMS)
    if workers is None:
        raise Invalid(f"--cluster {where} needs to know how many hosts to ask for", "give --workers")
    if where == "slurm":
        cluster = of_jobs()
        cluster.scale(jobs=workers)
        return cluster, workers
    cluster = of_pods()
    cluster.scale(workers)
    return cluster, workers


def of_jobs() -> Any:
    """dask-jobqueue's cluster on Slurm, without workers yet: each has a node of its own, with nothing beside it."""
    slurm = package("dask_jobqueue", "slurm")
    own = dask.config.get("jobqueue.slurm.job-script-prologue") or []
    return slurm.SLURMCluster(
        cores=1,
        processes=1,
        job_extra_directives=["--exclusive"],
        job_script_prologue=[*own, *(f"export {name}={value}" for name, value in VARIABLES.items())],
    )


def of_pods() -> Any:
    """dask-kubernetes' cluster, without workers yet. A specification of the user's own is taken as it is."""
    kubernetes = package("dask_kubernetes.operator", "kubernetes")
    if dask.config.get("kubernetes.custom-cluster-spec"):
        return kubernetes.KubeCluster()
    configured = {key.replace("-", "_"): dask.config.get(f"kubernetes.{key}") for key in POD_SETTINGS}
    # A name of its own: KubeCluster joins a cluster that has the name, and removes it in the end.
    name = f"ipcmark-fleet-{uuid4().hex[:8]}"
    made = kubernetes.make_cluster_spec(name=name, n_workers=0, **configured)
    return kubernetes.KubeCluster(custom_cluster_spec=for_measuring(made))


def for_measuring(cluster: dict[str, Any]) -> dict[str, Any]:
    """The specification `cluster` of a DaskCluster, with its workers spread over nodes, of which they know the name."""
    worker = cluster["spec"]["worker"]["spec"]
    labels = {"dask.org/cluster-name": cluster["metadata"]["name"], "dask.org/component": "worker"}
    worker["topologySpreadConstraints"] = [
        {
            "maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": labels},
        }
    ]
    settings = [{"name": name, "value": value} for name, value in VARIABLES.items()]
    node = {"name": HOST_VARIABLE, "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}
    for part in ["scheduler", "worker"]:
        for container in cluster["spec"][part]["spec"]["containers"]:
            container["env"] = [*settings, node, *(container.get("env") or [])]
    return cluster


def ssh_hosts(file: Path) -> list[str]:
    """The hosts of `file`, one a line: the scheduler's, then those of the workers."""
    try:
        lines = [line.split("#")[0].strip() for line in file.read_text().splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise Invalid(f"{file} cannot be read: {error}", "name a file with a host on each line") from None
    hosts = [line for line in lines if line]
    if len(hosts) < 2:
        raise Invalid(
            f"{file} names {len(hosts)} hosts",
            "give the scheduler's host on the first line, and on each other line a host to measure on",
        )
    return hosts


def package(module: str, extra: str) -> Any:
    """The module that makes a kind of cluster."""
    try:
        return __import__(module, fromlist=["*"])
    except ImportError as error:
        raise Invalid(f"{module} is not installed: {error}", f"pip install 'ipcmark[{extra}]'") from None
