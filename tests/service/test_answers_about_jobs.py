"""What answers say besides: which demands are ignored, what was asked for, and what stays the same."""

from __future__ import annotations

from collections.abc import Callable

from live_bench import LiveBench, cluster, job

Make = Callable[..., LiveBench]


def test_jobs_and_plans_say_once_which_demands_are_ignored(make_live: Make) -> None:
    live = make_live(cluster("sparrow"))
    gang = job("sleep 1000", id="g", gang=True, count=2)
    apart = job("sleep 1000", id="c", tags=["x"], constraints=["x -> {x, 0, 0} in machine"])
    notes = {}
    for document in (job("sleep 1000", id="p"), gang, apart):
        answer = live.post("/v1/jobs", document)
        assert answer.status == 201, answer.document
        notes[document["id"]] = answer.document["notes"]
        assert live.read(f"/v1/jobs/{document['id']}")["notes"] == notes[document["id"]]
    assert [len(notes[name]) for name in "pgc"] == [0, 1, 1]
    assert "gang" in notes["g"][0]
    assert notes["g"] != notes["c"]
    asked = [{**each, "id": f"{at}"} for at, each in enumerate((apart, gang, job(), gang, apart))]
    plan = live.post("/v1/plan", {"jobs": asked}).document
    assert plan["notes"] == [*notes["c"], *notes["g"]]


def test_jobs_and_tasks_are_looked_for_by_text_and_machine(make_live: Make) -> None:
    live = make_live()
    for name, called in (("one", "Alpha"), ("two", "beta"), ("alphabet", "")):
        live.submit(job("sleep 1000", id=name, name=called, count=2))
        live.running(name, 2)

    def found(query: str) -> list[str]:
        return [each["id"] for each in live.read(f"/v1/jobs?{query}")["items"]]

    assert found("match=pha") == ["alphabet", "one"]
    assert found("match=beta") == ["two"]
    assert found("match=none") == []
    tasks = live.read("/v1/tasks")["items"]
    there = {each["machine"] for each in tasks}
    assert len(tasks) == 6
    for machine in ("m0", "m1", "m2", "m3"):
        listed = live.read(f"/v1/tasks?machine={machine}")["items"]
        assert listed == [each for each in tasks if each["machine"] == machine]
        assert bool(listed) == (machine in there)
    assert live.read("/v1/tasks?machine=m9")["items"] == []


def test_the_version_of_a_machine_is_that_of_what_users_can_change(make_live: Make) -> None:
    live = make_live()
    path = "/v1/machines/m0"
    idle = live.get(path)
    live.submit(job("sleep 1000", id="j", count=16))
    live.running("j", 16)
    busy = live.get(path)
    assert (idle.document["running"], busy.document["running"]) == (0, 4)
    assert idle.document["used"] == {}
    assert busy.document["used"] == {"cpu": 1000, "memory": 256 * 2**20}
    assert busy.etag == idle.etag
    versions = {idle.etag}
    for patch in (
        {"draining": True},
        {"capacity": {"cpu": "2", "memory": "1GiB"}},
        {"draining": False},
    ):
        versions.add(live.patch(path, patch).etag)
    assert len(versions) == 4
    back = live.patch(path, {"capacity": {"cpu": "1", "memory": "1GiB"}})
    assert back.etag == idle.etag
    # Another machine of the same size has another version.
    assert live.get("/v1/machines/m1").etag != idle.etag


def test_a_machine_that_comes_back_has_its_old_place_among_the_pages(make_live: Make) -> None:
    live = make_live()
    live.delete("/v1/machines/m1")
    added = {"name": "m1", "capacity": {"cpu": "1", "memory": "1GiB"}}
    assert live.post("/v1/machines", added).status == 201
    pages = [
        [each["name"] for each in live.read(f"/v1/machines?after={name}")["items"]]
        for name in ("m0", "m3", "m1")
    ]
    assert pages == [["m1", "m2", "m3"], [], ["m2", "m3"]]
    # So has another machine of that name.
    live.delete("/v1/machines/m1")
    other = {**added, "attributes": {"disk": "ssd"}, "joins": {"rack": ["r"]}}
    document = live.post("/v1/machines", other).document
    assert (document["attributes"], document["joins"]) == ({"disk": "ssd"}, {"rack": ["r"]})
    assert live.read("/v1/machines?after=m0")["items"][0] == document
    # Its room is its own: nothing is left of the one before.
    assert (document["used"], document["running"], document["draining"]) == ({}, 0, False)
