"""The cluster as an agent: samples, commits and reservations of schedulers elsewhere."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from live_bench import LiveBench, cluster, job
from serial_attempts import cell_of

from argosy.engines.registry import ENGINES
from argosy.model.machines import Machine
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.transactions import OPERATOR, DrainMachine, Transaction
from argosy.records.journal_file import JournalFile
from argosy.records.replay import Replay
from argosy.service.agent import AgentOptions, Pipelines

Make = Callable[..., LiveBench]

MIB = 2**20
#: A quarter of a machine.
QUARTER = {"cpu": 250, "memory": 64 * MIB}
WHOLE = {"cpu": 1000, "memory": 64 * MIB}


def sleeper(name: str, cpu: str = "250m", **keys: Any) -> dict[str, Any]:
    return job("sleep 1000", id=name, request={"cpu": cpu, "memory": "64MiB"}, **keys)


def commit(live: LiveBench, name: str, *machines: str, key: str = "", **keys: Any) -> Any:
    order = {"job": keys.pop("job", None) or sleeper(name), "machines": machines, **keys}
    return live.post("/v1/commits", order, headers={"Idempotency-Key": key or name})


def metric(live: LiveBench, name: str) -> float:
    for line in live.get("/metrics").body.decode().splitlines():
        if line.startswith(f"argosy_agent_{name} "):
            return float(line.split()[1])
    raise AssertionError(name)


def test_a_sample_has_machines_that_fit_with_a_score_for_each_plug_in(make_live: Make) -> None:
    live = make_live()
    answer = commit(live, "full", "m1", job=sleeper("full", cpu="1"))
    assert answer.status == 201, answer
    asked = {
        "request": QUARTER,
        "share": 1,
        "scores": ["ResourcesFit", "GeoLocation"],
        "free": True,
    }
    sample = live.post("/v1/sample", asked).document
    assert sorted(sample["machines"]) == ["m0", "m2", "m3"]
    # Three quarters of the processors and 15/16 of the memory stay free.
    assert sample["scores"] == [[84, 100]] * 3
    assert sample["resources"] == ["cpu", "memory"]
    assert sample["free"] == [[1000, 1024 * MIB]] * 3
    assert (sample["drawn"], sample["ruled_out"]) == (4, {"cpu": 1})


def test_a_sample_is_as_large_as_asked_for(live: LiveBench) -> None:
    for size, found in (({"share": 0.5}, 2), ({"count": 3}, 3), ({"share": 0.01}, 1)):
        assert (
            len(live.post("/v1/sample", {"request": QUARTER, **size}).document["machines"]) == found
        )


@pytest.mark.parametrize(
    ("kept", "found"),
    [({}, 3), ({"repeats": "keep"}, 6), ({"repeats": "keep", "overshoot": "cut"}, 4)],
)
def test_a_sample_keeps_what_it_is_told_to_of_machines_drawn_twice_and_too_many(
    make_live: Make, kept: dict[str, str], found: int
) -> None:
    live = make_live()
    # Each of the two rounds draws all four machines and finds three.
    assert commit(live, "full", "m1", job=sleeper("full", cpu="1")).status == 201
    asked = {"request": QUARTER, "share": 1, "rounds": 2, **kept}
    sample = live.post("/v1/sample", asked).document
    assert len(sample["machines"]) == len(sample["scores"]) == found
    assert set(sample["machines"]) == {"m0", "m2", "m3"}


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({}, ""),
        ({"request": QUARTER, "repeats": "often"}, "repeats"),
        ({"request": QUARTER, "share": 2}, "share"),
        ({"request": {"cpu": -1}}, "request"),
        ({"request": {"cpu": 2**60}}, "request"),
        ({"request": {"cpu": "1"}}, "request"),
        ({"request": QUARTER, "shares": 1}, ""),
        ({"request": QUARTER, "filters": ["Bind"]}, ""),
        ({"request": QUARTER, "strategy": "Nobody"}, ""),
        ([], ""),
        ({"request": {}, "jobs": {"a": [False]}}, "jobs"),
    ],
)
def test_a_sample_that_cannot_be_is_refused_with_its_place(
    live: LiveBench, asked: Any, field: str
) -> None:
    answer = live.post("/v1/sample", asked)
    assert answer.status == 422
    assert answer.document.get("field", "").startswith(field)


def test_a_commit_runs_the_job_on_its_machine_and_says_who_decided(make_live: Make) -> None:
    live = make_live()
    answer = commit(live, "a", "m2")
    assert (answer.status, answer.headers["Location"]) == (201, "/v1/jobs/a")
    assert answer.document == {"key": "a", "job": "a", "machine": "m2"}
    task = live.read("/v1/jobs/a/tasks/0")
    assert (task["machine"], task["state"]) == ("m2", "running")
    assert live.running("a")
    assert live.read("/v1/jobs/a")["scheduler"] == "local"
    assert "m2" in " ".join(live.read("/v1/jobs/a/tasks/0/why")["text"])
    assert live.read("/v1/commits")["items"] == [answer.document]


def test_a_commit_goes_on_to_the_next_machine_and_conflicts_if_none_is_left(
    make_live: Make,
) -> None:
    live = make_live()
    for name in ("m0", "m1"):
        commit(live, f"on-{name}", name, job=sleeper(f"on-{name}", cpu="1"))
    assert commit(live, "a", "m0", "m1", "m3").document["machine"] == "m3"
    problem = commit(live, "b", "m0", "m1").problem(409, "commit-conflict")
    assert problem["refused"] == {
        "why": "no_room",
        "machine": "m1",
        "resource": "cpu",
        "lacking": 250,
    }
    assert "m1 lacks 0.25 cores" in problem["detail"]
    live.get("/v1/jobs/b").problem(404, "not-found")
    assert metric(live, "reservations") == 0
    found = [metric(live, f'commits_total{{result="{each}"}}') for each in ("success", "conflict")]
    assert found == [3, 4]


def test_a_machine_that_is_unknown_or_drains_refuses(make_live: Make) -> None:
    live = make_live()
    live.patch("/v1/machines/m0", {"draining": True})
    for machine, why in (("m9", "machine_gone"), ("m0", "machine_draining")):
        problem = commit(live, "a", machine, key=machine).problem(409, "commit-conflict")
        assert (problem["refused"]["why"], problem["refused"]["machine"]) == (why, machine)


def test_a_machine_without_what_the_job_requires_refuses(make_live: Make) -> None:
    machines = (
        Machine("plain", Resources(1000, 2**30)),
        Machine("green", Resources(1000, 2**30), {"colour": "green"}),
    )
    live = make_live(cluster(machines=machines))
    wanted = sleeper("a", requires={"colour": "green"})
    problem = commit(live, "a", "plain", job=wanted).problem(409, "commit-conflict")
    assert problem["refused"]["why"] == "filtered"
    assert commit(live, "a", "green", job=wanted, key="b").status == 201


def test_a_repeated_commit_gets_the_same_answer_and_claims_nothing_more(make_live: Make) -> None:
    live = make_live()
    first = commit(live, "a", "m0")
    again = commit(live, "a", "m0")
    assert (again.status, again.document) == (200, first.document)
    assert live.read("/v1/machines/m0")["used"] == QUARTER
    live.cancel("a")
    assert commit(live, "a", "m0").document == first.document
    other = sleeper("a", cpu="500m")
    commit(live, "a", "m0", job=other).problem(409, "conflict")


def test_a_repeated_commit_that_was_refused_is_refused_again(make_live: Make) -> None:
    live = make_live()
    commit(live, "full", "m0", job=sleeper("full", cpu="1"))
    first = commit(live, "a", "m0").problem(409, "commit-conflict")
    live.cancel("full")
    assert commit(live, "a", "m0").problem(409, "commit-conflict") == first
    assert commit(live, "a", "m0", key="new").status == 201


def test_commits_with_one_key_at_once_are_one_commit(make_live: Make) -> None:
    live = make_live()
    order = {"job": sleeper("a"), "machines": ["m0"]}

    async def all_at_once() -> list[int]:
        async def one() -> int:
            headers = {"Idempotency-Key": "k"}
            async with live.client.post("/v1/commits", json=order, headers=headers) as answer:
                return answer.status

        return await asyncio.gather(*(one() for _ in range(8)))

    assert sorted(live.run(all_at_once())) == [200] * 7 + [201]
    assert live.read("/v1/machines/m0")["used"] == QUARTER


def test_commits_for_the_same_room_at_once_take_it_once(make_live: Make) -> None:
    live = make_live()

    async def all_at_once() -> list[int]:
        async def one(name: str) -> int:
            order = {"job": sleeper(name, cpu="1"), "machines": ["m0"]}
            headers = {"Idempotency-Key": name}
            async with live.client.post("/v1/commits", json=order, headers=headers) as answer:
                return answer.status

        return await asyncio.gather(*(one(f"j{n}") for n in range(8)))

    assert sorted(live.run(all_at_once())) == [201] + [409] * 7
    assert metric(live, "reservations") == 0


def test_keys_survive_the_server(make_live: Make) -> None:
    live = make_live()
    first = commit(live, "a", "m0")
    live.stop()
    live.start()
    assert commit(live, "a", "m0").document == first.document
    assert live.read("/v1/commits")["items"] == [first.document]


def test_a_released_commit_is_cancelled_and_its_key_used_up(make_live: Make) -> None:
    live = make_live()
    commit(live, "a", "m0")
    assert live.delete("/v1/commits/a").document == {"key": "a", "job": "a"}
    assert live.over("a")["state"] == "cancelled"
    assert live.delete("/v1/commits/a").document == {"key": "a", "job": None}
    commit(live, "a", "m0").problem(409, "conflict")
    assert live.read("/v1/commits")["items"] == []


def test_a_release_that_overtakes_its_commit_keeps_it_from_happening(make_live: Make) -> None:
    live = make_live()
    assert live.delete("/v1/commits/late").document == {"key": "late", "job": None}
    commit(live, "a", "m0", key="late").problem(409, "conflict")
    live.get("/v1/jobs/a").problem(404, "not-found")


@pytest.mark.parametrize(
    ("change", "status", "place"),
    [
        ({"machines": []}, 422, "machines"),
        ({"job": {"id": "x"}}, 422, "job"),
        ({"job": job("true")}, 422, "job"),
        ({"job": sleeper("x", count=2)}, 422, "job.count"),
        ({"checks": ["Nobody"]}, 422, ""),
        ({"commit": "Nobody"}, 422, ""),
        ({"reservation": "r999"}, 404, ""),
        ({"surprise": 1}, 422, ""),
    ],
)
def test_a_commit_that_cannot_be_is_refused_with_its_place(
    live: LiveBench, change: dict[str, Any], status: int, place: str
) -> None:
    order = {"job": sleeper("x"), "machines": ["m0"], **change}
    answer = live.post("/v1/commits", order, headers={"Idempotency-Key": str(change)})
    assert answer.status == status
    assert answer.document.get("field", "").startswith(place)
    assert metric(live, "reservations") == 0


def test_a_commit_needs_a_key(live: LiveBench) -> None:
    answer = live.post("/v1/commits", {"job": sleeper("x"), "machines": ["m0"]})
    assert answer.problem(400, "request")["field"] == "Idempotency-Key"


def test_reserved_room_is_left_alone_by_samples_and_other_commits(make_live: Make) -> None:
    live = make_live()
    asked = {"machine": "m0", "request": {"cpu": 900}}
    made = live.post("/v1/reservations", asked)
    assert made.status == 201
    assert live.read("/v1/reservations")["items"][0]["machine"] == "m0"
    sample = live.post("/v1/sample", {"request": QUARTER, "share": 1}).document
    assert sorted(sample["machines"]) == ["m1", "m2", "m3"]
    commit(live, "a", "m0").problem(409, "commit-conflict")
    live.post("/v1/reservations", asked).problem(409, "commit-conflict")
    used = commit(live, "b", "m0", job=sleeper("b", cpu="900m"), reservation=made.document["id"])
    assert used.status == 201
    assert live.read("/v1/reservations")["items"] == []
    assert metric(live, "reservations") == 0


def test_a_reservation_can_be_given_up(make_live: Make) -> None:
    live = make_live()
    name = live.post("/v1/reservations", {"machine": "m0", "request": WHOLE}).document["id"]
    assert live.delete(f"/v1/reservations/{name}").status == 204
    live.delete(f"/v1/reservations/{name}").problem(404, "not-found")
    assert commit(live, "a", "m0").status == 201
    live.post("/v1/reservations", {"machine": "m9", "request": WHOLE}).problem(404, "not-found")


def test_reserved_room_is_lost_when_its_lease_is_over(
    make_live: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = make_live()
    asked = {"machine": "m0", "request": WHOLE, "lease": 10**15}
    made = live.post("/v1/reservations", asked).document
    # However long a lease is asked for, it is a minute at most.
    assert 0 < made["lease"] <= 60_000_000
    assert metric(live, "reservations") == 1
    for held in live.server.agent._held:
        room = live.server.agent._held[held]
        live.server.agent._held[held] = room._replace(expires=0.0)
    assert metric(live, "reservations") == 0
    assert metric(live, "reservations_expired_total") == 1
    assert commit(live, "a", "m0", job=sleeper("a", cpu="1")).status == 201


def test_reservations_outlive_a_change_of_the_fleet(make_live: Make) -> None:
    live = make_live()
    made = live.post("/v1/reservations", {"machine": "m0", "request": WHOLE}).document
    live.put("/v1/fleet", {"fleet": [{"name": "other", "engine": "kube"}]})
    commit(live, "a", "m0").problem(409, "commit-conflict")
    wanted = sleeper("b", cpu="1")
    assert commit(live, "b", "m0", job=wanted, reservation=made["id"]).status == 201


def test_a_committed_job_that_loses_its_machine_is_placed_anew_by_the_fleet(
    make_live: Make,
) -> None:
    live = make_live()
    commit(live, "a", "m0")
    live.delete("/v1/machines/m0")
    assert live.running("a")
    assert live.read("/v1/jobs/a/tasks/0")["machine"] in ("m1", "m2", "m3")


def test_the_journal_of_an_agent_can_be_replayed(make_live: Make) -> None:
    live = make_live()
    commit(live, "a", "m0", job=sleeper("a", cpu="1"))
    commit(live, "b", "m0", "m1")
    commit(live, "c", "m0")
    live.over(live.submit(job()))
    journal = live.get("/v1/journal").body
    summary = Replay(JournalFile(journal, "live"), ENGINES, finished=False).run()
    assert summary.inputs > 0


def test_samples_are_drawn_from_an_old_picture_if_told_to_but_own_commits_are_known(
    make_live: Make,
) -> None:
    live = make_live(agent=AgentOptions(refresh=3600 * 10**6))
    everything = {"request": WHOLE, "share": 1}
    assert len(live.post("/v1/sample", everything).document["machines"]) == 4
    commit(live, "a", "m0", job=sleeper("a", cpu="1"))
    assert len(live.post("/v1/sample", everything).document["machines"]) == 3
    live.running(live.submit(job("sleep 1000", id="other", request={"cpu": "1", "memory": "1MiB"})))
    assert len(live.post("/v1/sample", everything).document["machines"]) == 3
    where = live.read("/v1/jobs/other/tasks/0")["machine"]
    commit(live, "b", where).problem(409, "commit-conflict")


def test_commits_of_one_job_with_two_keys_at_once_make_one_job(make_live: Make) -> None:
    live = make_live()

    async def all_at_once() -> list[int]:
        async def one(key: str) -> int:
            order = {"job": sleeper("a"), "machines": ["m0"]}
            headers = {"Idempotency-Key": key}
            async with live.client.post("/v1/commits", json=order, headers=headers) as answer:
                return answer.status

        return await asyncio.gather(*(one(f"k{n}") for n in range(4)))

    statuses = sorted(live.run(all_at_once()))
    assert statuses[0] == 201
    assert set(statuses[1:]) <= {409, 422}
    assert live.read("/v1/machines/m0")["used"] == QUARTER
    assert metric(live, "reservations") == 0


def test_an_agent_notices_that_a_machine_takes_no_more_between_two_samples() -> None:
    cell = cell_of(4, 4)
    membership = SimpleNamespace(changes=0)
    host: Any = SimpleNamespace(view=cell.view(), membership=membership, random=Random(1))
    pipelines = Pipelines(host, AgentOptions(), "north")

    def are_open() -> list[bool]:
        known = pipelines.cache.sample(np.array([0, 1], np.int32), 0, is_cut_off=False)
        return [free >= 0 for free in known.free[:, 0].tolist()]

    assert are_open() == [True, True]
    cell.commit(Transaction(OPERATOR, machines=(DrainMachine(0, draining=True),)))
    membership.changes += 1
    assert are_open() == [False, True]
