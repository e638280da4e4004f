"""A live scheduler over agents: the engine `vela` with real requests, also while things go wrong."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar, cast

import msgspec
import pytest
from federation_bench import FederationBench

from argosy.agents import registry
from argosy.agents.api import Nodes, Requirements
from argosy.api.agent_values import SampleRequest
from argosy.client.agent_connection import AgentLink, AgentReply
from argosy.engines.registry import ENGINES
from argosy.model.errors import EngineFault
from argosy.model.explanations import Refusal, Why
from argosy.model.machines import Machine
from argosy.model.resources import Resources
from argosy.records.journal_file import JournalFile
from argosy.records.replay import Replay
from argosy.service import remote_agents
from argosy.service.agent import AgentOptions
from argosy.service.remote_runner import RemotePlace
from argosy.worlds.local.turn import TryResult

Make = Callable[..., FederationBench]


@pytest.fixture
def make_bench(tmp_path: Path) -> Iterator[Make]:
    made = []

    def make(**options: Any) -> FederationBench:
        made.append(FederationBench(tmp_path, **options))
        return made[-1]

    yield make
    for bench in made:
        bench.close()


def figure(bench: FederationBench, name: str) -> float:
    return bench.scheduler.cluster.world.host.schedulers[0].figures()[name]


def test_tasks_are_placed_in_the_clusters_of_agents_and_end_there(make_bench: Make) -> None:
    bench = make_bench()
    bench.submit("a", count=6)
    bench.running("a", 6)
    machines = bench.machines("a")
    assert all(machine.partition("/")[0] in ("c0", "c1", "c2") for machine in machines)
    assert sum(bench.committed().values()) == 6
    assert "highest score" in " ".join(bench.read("/v1/jobs/a/tasks/0/why")["text"])
    bench.submit("short", estimate="10ms")
    assert bench.over("short") == "finished"
    assert bench.reservations() == 0


def test_a_cancelled_job_is_released_at_its_agents(make_bench: Make) -> None:
    bench = make_bench()
    bench.submit("a", count=4)
    bench.running("a", 4)
    bench.run(bench.ask("POST", "/v1/jobs/a/cancel"))
    bench.until(lambda: sum(bench.committed().values()) == 0)
    assert bench.state("a") == "cancelled"


def test_a_full_federation_gives_up_and_why_says_so(make_bench: Make) -> None:
    bench = make_bench(agents=2, machines=1, settings={"reschedules": 2, "backoff": 1_000})
    bench.submit("full", count=2, request={"cpu": "1", "memory": "64MiB"})
    bench.running("full", 2)
    bench.submit("late")
    assert bench.over("late") == "abandoned"
    why = " ".join(bench.read("/v1/jobs/late/tasks/0/why")["text"])
    assert "given up after 3 attempts" in why
    assert "cpu" in why


class Never:
    """A check of a third party that refuses every machine."""

    name: ClassVar[str] = "Never"

    def conflict(self, task: Requirements, node: Nodes) -> Refusal:
        return Refusal(Why.FILTERED, machine=int(node.machines[0]))


def test_a_task_that_a_check_refuses_is_given_up_and_why_says_so(
    make_bench: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(cast(dict[str, type], registry.PLUGINS), Never.name, Never)
    bench = make_bench(
        agents=2, machines=2, settings={"checks": [Never.name], "reschedules": 2, "backoff": 1_000}
    )
    bench.submit("a")
    assert bench.over("a") == "abandoned"
    assert figure(bench, "commits refused") > 3
    why = " ".join(bench.read("/v1/jobs/a/tasks/0/why")["text"])
    assert "given up after 3 attempts" in why
    assert "it would break a hard constraint on c" in why
    assert "a machine that meets the task's requirements" in why
    assert bench.reservations() == 0


def test_conflicts_go_on_to_the_next_candidate(make_bench: Make) -> None:
    # All samples are old, so everybody goes for the same machines.
    old = AgentOptions(refresh=3600 * 10**6)
    bench = make_bench(
        agents=2, agent_options=old, settings={"candidates": 8}, capacity=Resources(500, 2**30)
    )
    # Somebody else takes half of what the agents believe to be free.
    for name, server in bench.agents.items():
        bench.run(_sample(server))
        for number in range(2):
            bench.run(_submit(server, f"{name}-{number}"))
    bench.submit("a", count=4)
    bench.running("a", 4)
    assert figure(bench, "commits refused") > 0
    assert bench.reservations() == 0


async def _sample(server: Any) -> None:
    server.agent.sample(SampleRequest(request={"cpu": 1}, share=1.0))


async def _submit(server: Any, name: str) -> None:
    document = {"id": name, "command": "true", "request": {"cpu": "500m", "memory": "1MiB"}}
    world = server.cluster.world
    job = server.backend.submissions.read(world, document, "")
    await server.cluster.do(lambda world: world.submit(job))


def test_a_commit_whose_answer_is_lost_is_repeated_and_made_once(make_bench: Make) -> None:
    bench = make_bench(agents=1)
    proxy = bench.proxies["c0"]
    proxy.cuts[b"POST /v1/commits "] = 2
    bench.submit("a")
    bench.running("a")
    assert proxy.was_cut == 2
    agent = bench.agents["c0"].agent
    assert agent is not None
    assert (agent.counts.commits, agent.counts.repeated) == (1, 2)
    assert bench.committed() == {"c0": 1}
    assert figure(bench, "agents not reached") == 0


def test_a_commit_that_is_never_answered_is_undone_and_made_elsewhere(
    make_bench: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_agents, "FIRST_REST", 0.001)
    bench = make_bench(agents=2, machines=1, settings={"candidates": 2})
    first = "c0"
    bench.proxies[first].cuts[b"POST /v1/commits "] = 100
    bench.submit("a")
    bench.submit("b", request={"cpu": "1", "memory": "64MiB"})
    bench.running("a")
    bench.until(lambda: bench.committed()[first] == 0)
    assert bench.machines("a") == ["c1/m0"]


def test_an_agent_that_is_away_costs_only_its_cluster(make_bench: Make) -> None:
    bench = make_bench()
    bench.run(bench.proxies["c1"].go_away())
    bench.submit("a", count=4)
    bench.running("a", 4)
    assert {machine[:2] for machine in bench.machines("a")} <= {"c0", "c2"}
    assert figure(bench, "agents not reached") > 0


def test_the_only_agent_being_away_is_named_by_why(make_bench: Make) -> None:
    bench = make_bench(agents=1, settings={"reschedules": 1, "backoff": 1_000})
    bench.run(bench.proxies["c0"].go_away())
    bench.submit("a")
    assert bench.over("a") == "abandoned"
    why = " ".join(bench.read("/v1/jobs/a/tasks/0/why")["text"])
    assert "bring back the agents that do not answer" in why


def test_a_slow_agent_is_not_waited_for_if_there_is_a_time_out(make_bench: Make) -> None:
    bench = make_bench(agents=2, settings={"timeout": 50_000})
    bench.proxies["c0"].passes.clear()
    bench.submit("a")
    bench.running("a")
    assert bench.machines("a")[0].startswith("c1/")
    bench.proxies["c0"].passes.set()


def test_a_scheduler_that_starts_again_goes_on_with_its_tasks(make_bench: Make) -> None:
    bench = make_bench()
    bench.submit("a", count=3)
    bench.running("a", 3)
    bench.submit("b", estimate="2s")
    bench.running("b")
    bench.run(bench.stop("scheduler"))
    bench.run(bench.start_scheduler())
    bench.running("a", 3)
    assert bench.over("b") == "finished"
    assert sum(bench.committed().values()) == 3


def test_what_ended_while_the_scheduler_was_away_is_known_when_it_is_back(make_bench: Make) -> None:
    bench = make_bench(agents=1)
    bench.submit("a", estimate="300ms")
    bench.running("a")
    bench.run(bench.stop("scheduler"))
    bench.until(lambda: sum(bench.committed().values()) == 0)
    bench.run(bench.start_scheduler())
    assert bench.over("a") == "finished"
    agent = bench.agents["c0"].agent
    assert agent is not None
    assert agent.counts.commits == 1


def test_what_a_crash_left_with_an_agent_is_undone(make_bench: Make) -> None:
    bench = make_bench(agents=1)
    bench.run(bench.stop("scheduler"))
    bench.run(_commit_as_if_by_the_scheduler(bench, "bench.vela.99.1"))
    assert bench.committed() == {"c0": 1}
    bench.run(bench.start_scheduler())
    bench.until(lambda: bench.committed() == {"c0": 0})


async def _commit_as_if_by_the_scheduler(bench: FederationBench, key: str) -> None:
    link = AgentLink(bench.proxies["c0"].endpoint)
    job = {"id": key, "command": "true", "request": {"cpu": "500m", "memory": "1MiB"}}
    body = msgspec.json.encode({"job": job, "machines": ["m3"]})
    assert (await link.ask("POST", "/v1/commits", body, key=key)).status == 201
    link.close()


def test_a_task_that_somebody_else_cancels_at_the_agent_is_placed_anew(make_bench: Make) -> None:
    bench = make_bench(agents=1)
    bench.submit("a")
    bench.running("a")
    server = bench.agents["c0"]
    [there] = server.cluster.world.projection.by_id
    bench.run(server.cluster.do(lambda world: world.cancel(there)))
    bench.until(lambda: bench.committed() == {"c0": 1})
    bench.running("a")


def test_a_failed_task_is_retried_as_often_as_its_job_allows(make_bench: Make) -> None:
    bench = make_bench(agents=1)
    bench.submit("a", retries=1)
    bench.running("a")
    for _ in range(2):
        bench.until(lambda: bench.committed() == {"c0": 1} and bench.state("a") == "running")
        world = bench.agents["c0"].cluster.world
        [number] = world.tries
        bench.agents["c0"].cluster.ended(number, TryResult(3, "exited with 3"))
        bench.until(lambda: bench.committed() == {"c0": 0})
    assert bench.over("a") == "failed"


def test_machines_that_join_a_cluster_become_known(make_bench: Make) -> None:
    bench = make_bench(agents=1, machines=1)
    new = Machine("new", Resources(4000, 2**31))
    server = bench.agents["c0"]
    bench.run(server.cluster.do(lambda world: world.add_machine(new)))
    bench.submit("a", request={"cpu": "2", "memory": "1GiB"})
    bench.running("a")
    assert bench.machines("a") == ["c0/new"]


def test_the_journal_of_a_scheduler_can_be_replayed_without_agents(make_bench: Make) -> None:
    bench = make_bench()
    bench.submit("a", count=3)
    bench.running("a", 3)
    bench.submit("short", estimate="10ms")
    bench.over("short")
    bench.run(bench.ask("POST", "/v1/jobs/a/cancel"))
    bench.over("a")

    async def journal() -> bytes:
        async with bench._client.get("/v1/journal") as answer:
            return await answer.read()

    lines = bench.run(journal())
    assert Replay(JournalFile(lines, "live"), ENGINES, finished=False).run().inputs > 10


def test_many_jobs_at_once_are_each_placed_once(make_bench: Make) -> None:
    bench = make_bench(machines=10)

    async def all_at_once() -> None:
        await asyncio.gather(
            *(
                bench.ask(
                    "POST",
                    "/v1/jobs",
                    {
                        "id": f"j{n}",
                        "command": "true",
                        "request": {"cpu": "500m", "memory": "1MiB"},
                    },
                )
                for n in range(40)
            )
        )

    bench.run(all_at_once())
    bench.until(lambda: sum(bench.committed().values()) == 40)
    rows = bench.scheduler.cluster.world.projection.by_id
    bench.until(lambda: all(row.counts["running"] == 1 for row in rows.values()))
    assert bench.reservations() == 0
    for server in bench.agents.values():
        server.cluster.world.host.cell.require_sound()


def test_a_world_that_is_built_anew_undoes_what_it_does_not_know(make_bench: Make) -> None:
    bench = make_bench(agents=1)
    bench.submit("a")
    bench.running("a")
    lost = RemotePlace("c0", "bench.vela.1.999")
    bench.run(_commit_as_if_by_the_scheduler(bench, lost.key))
    # The commit has succeeded, but the turn that says so was never written.
    bench.federated.runner.place("b", 0, lost)
    cluster = bench.scheduler.cluster

    async def fail() -> None:
        with pytest.raises(EngineFault):
            await cluster.do(lambda world: world.host.cancel("nonsense"))  # type: ignore[arg-type]

    bench.run(fail())
    bench.until(lambda: not cluster.is_failing)
    bench.until(lambda: bench.committed() == {"c0": 1})
    bench.running("a")


@pytest.mark.parametrize(
    "answer",
    [
        b'{"machines": ["m0", "m1"], "scores": [[1, 2]]}',
        b'{"machines": ["m0"], "scores": [[1, 2, 3]]}',
        b'{"machines": ["m0"], "scores": [[1, 2]], "free": [[1]], "resources": ["cpu", "memory"]}',
        b'{"machines": "m0", "scores": []}',
        b"not JSON",
    ],
)
def test_an_agent_that_answers_nonsense_counts_as_away(
    make_bench: Make, monkeypatch: pytest.MonkeyPatch, answer: bytes
) -> None:
    bench = make_bench(agents=2, settings={"decision_scores": {"ResourcesFit": 1.0}})
    link = bench.federated._links["c0"]
    ask = link.ask

    async def nonsense(method: str, path: str, body: bytes = b"", *, key: str = "") -> AgentReply:
        reply = await ask(method, path, body, key=key)
        return AgentReply(200, answer) if path == "/v1/sample" else reply

    monkeypatch.setattr(link, "ask", nonsense)
    bench.submit("a")
    bench.running("a")
    assert bench.machines("a")[0].startswith("c1/")
    assert figure(bench, "agents not reached") == 1
    assert not bench.scheduler.cluster.is_failing


def test_an_agent_knows_best_what_is_free(make_bench: Make) -> None:
    bench = make_bench(agents=1, machines=1)
    bench.submit("a", count=2)
    bench.running("a", 2)
    server = bench.agents["c0"]
    larger = Resources(2000, 2**30)
    bench.run(server.cluster.do(lambda world: world.resize_machine("m0", larger)))
    bench.submit("b", count=2)
    bench.running("b", 2)
    assert bench.machines("b") == ["c0/m0"] * 2


def test_a_task_that_is_cancelled_while_its_commit_is_under_way_is_released(
    make_bench: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = make_bench(agents=1)
    link = bench.federated._links["c0"]
    ask, may_answer = link.ask, asyncio.Event()

    async def held(method: str, path: str, body: bytes = b"", *, key: str = "") -> AgentReply:
        reply = await ask(method, path, body, key=key)
        if path == "/v1/commits" and method == "POST":
            await may_answer.wait()
        return reply

    monkeypatch.setattr(link, "ask", held)
    bench.submit("a")
    bench.until(lambda: bench.committed() == {"c0": 1})
    bench.run(bench.ask("POST", "/v1/jobs/a/cancel"))
    may_answer.set()
    bench.until(lambda: bench.committed() == {"c0": 0})
    assert bench.state("a") == "cancelled"


def test_what_belongs_to_other_clusters_is_not_changed_here(make_bench: Make) -> None:
    bench = make_bench(agents=1)
    routes = {(route.method, route.path) for route in bench.scheduler.routes}
    assert ("GET", "/v1/machines") in routes
    for method, path in (
        ("POST", "/v1/machines"),
        ("DELETE", "/v1/machines/{machine}"),
        ("PUT", "/v1/fleet"),
        ("POST", "/v1/plan"),
        ("POST", "/v1/commits"),
    ):
        assert (method, path) not in routes
