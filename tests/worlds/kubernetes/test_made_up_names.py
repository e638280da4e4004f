"""Pods whose names the API server has made up get jobs with names of their own, again and again."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace
from small_pod_cluster import SmallCluster, pod

from argosy.kubernetes.objects import Pod


def made_up(cpu: str, scheduler: str) -> Pod:
    made = pod("web-x7", cpu, schedulerName=scheduler, nodeName="n1")
    return replace(made, metadata=replace(made.metadata, generate_name="web-"))


@pytest.mark.parametrize("scheduler", ["argosy", "default-scheduler"])
def test_a_pod_on_its_node_may_be_resized_whoever_has_put_it_there(
    scheduler: str, tmp_path: Path
) -> None:
    cluster = SmallCluster("omega", tmp_path)
    with closing(cluster.store):
        for cpu, name in (("1", "web-x7"), ("2", "web-x7~2"), ("3", "web-x7~3")):
            cluster.pods.set_pod(made_up(cpu, scheduler))
            cluster.run(1)
            assert cluster.pods.pods["web-x7"].job == f"default.{name}"


@pytest.mark.parametrize("scheduler", ["argosy", "default-scheduler"])
def test_a_server_that_starts_again_on_its_database_takes_the_pod_again(
    scheduler: str, tmp_path: Path
) -> None:
    for name in ("web-x7", "web-x7~2", "web-x7~3"):
        cluster = SmallCluster("omega", tmp_path)
        with closing(cluster.store):
            cluster.pods.set_pod(made_up("1", scheduler))
            cluster.run(1)
            assert cluster.pods.pods["web-x7"].job == f"default.{name}"
