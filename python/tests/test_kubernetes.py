"""What a fleet asks of dask-kubernetes. No cluster is made here; docs/reference/python.md says what a cluster needs."""

import platform
from typing import Any

import pytest

from ipcmark.fleet.clusters import for_measuring
from ipcmark.fleet.host import identify


@pytest.fixture
def cluster() -> dict[str, Any]:
    """The specification of a DaskCluster, as dask-kubernetes makes it, without what is not read here."""
    return {
        "metadata": {"name": "fleet"},
        "spec": {
            "scheduler": {"spec": {"containers": [{"name": "scheduler", "env": []}]}},
            "worker": {"spec": {"containers": [{"name": "worker", "env": [{"name": "MINE", "value": "1"}]}]}},
        },
    }


def test_workers_are_spread_over_the_nodes(cluster: dict[str, Any]) -> None:
    (spread,) = for_measuring(cluster)["spec"]["worker"]["spec"]["topologySpreadConstraints"]
    assert spread["topologyKey"] == "kubernetes.io/hostname"
    assert spread["maxSkew"] == 1
    assert spread["labelSelector"]["matchLabels"] == {
        "dask.org/cluster-name": "fleet",
        "dask.org/component": "worker",
    }


def test_pods_have_the_settings_of_a_fleet_and_what_was_configured(cluster: dict[str, Any]) -> None:
    made = for_measuring(cluster)["spec"]
    for part in ["scheduler", "worker"]:
        (container,) = made[part]["spec"]["containers"]
        values = {variable["name"]: variable.get("value") for variable in container["env"]}
        assert values["DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED"] == "False"
        assert values["DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL"] == "60s"
    assert values["MINE"] == "1"


def test_a_pod_is_known_by_the_name_of_its_node(cluster: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    (worker,) = for_measuring(cluster)["spec"]["worker"]["spec"]["containers"]
    (variable,) = [variable for variable in worker["env"] if "valueFrom" in variable]
    assert variable["valueFrom"] == {"fieldRef": {"fieldPath": "spec.nodeName"}}
    assert identify()[0] == platform.node()
    monkeypatch.setenv(variable["name"], "node-7")
    assert identify()[0] == "node-7"
