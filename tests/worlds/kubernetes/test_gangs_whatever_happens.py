"""Groups of pods under every order of events: no group is ever begun in part, and every group that fits
is bound in the end."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path

from gang_cluster import APART, GangCluster, member, pod
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from argosy.kubernetes.objects import Pod
from argosy.worlds.kubernetes.gangs import group_of
from argosy.worlds.kubernetes.tracked import PodState

SIZES = {"two": 2, "three": 3, "apart": 3}
GROUPS = st.sampled_from(sorted(SIZES))


class GangMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.directory = tempfile.TemporaryDirectory(prefix="argosy-gangs-")
        self.cluster = GangCluster(Path(self.directory.name), settings={"preempt": True})
        self.made = 0
        #: Pods for which a bind was ordered before: they may be placed anew by themselves.
        self.ordered: set[str] = set()
        #: Members that have ended well, by group.
        self.succeeded: Counter[str] = Counter()

    def teardown(self) -> None:
        self.cluster.close()
        self.directory.cleanup()

    def go_on(self) -> None:
        before = dict(self.cluster.binds)
        self.cluster.go_on(2)
        new = self.cluster.binds.keys() - before.keys()
        for uid in new - self.ordered:
            name = group_name(self.cluster.objects[uid])
            if name:
                assert self.placed(name) >= SIZES[name], f"a part of {name} is bound"
        self.ordered |= new

    def placed(self, group: str) -> int:
        return self.succeeded[group] + sum(
            1
            for uid, each in self.cluster.objects.items()
            if group_name(each) == group and (each.spec.node_name or uid in self.cluster.binds)
        )

    @rule(group=GROUPS, cpu=st.integers(1, 3), priority=st.sampled_from((0, 100)))
    def add_member(self, group: str, cpu: int, priority: int) -> None:
        self.made += 1
        more = {"affinity": APART} if group == "apart" else {}
        uid = f"{group}-{self.made}"
        self.cluster.add(member(uid, SIZES[group], cpu, group, priority=priority, **more))
        self.go_on()

    @rule(cpu=st.integers(1, 4), priority=st.sampled_from((0, 50)))
    def add_single(self, cpu: int, priority: int) -> None:
        self.made += 1
        self.cluster.add(pod(f"single-{self.made}", cpu, labels={"app": "x"}, priority=priority))
        self.go_on()

    @precondition(lambda self: self.cluster.binds)
    @rule(data=st.data(), is_refused=st.booleans())
    def answer_a_bind(self, data: st.DataObject, is_refused: bool) -> None:
        uid = data.draw(st.sampled_from(sorted(self.cluster.binds)))
        if is_refused:
            self.cluster.refuse(uid)
        else:
            self.cluster.bind(uid)
        self.go_on()

    @precondition(lambda self: self.cluster.evictions)
    @rule(data=st.data(), is_refused=st.booleans())
    def answer_an_eviction(self, data: st.DataObject, is_refused: bool) -> None:
        uid = data.draw(st.sampled_from(sorted(self.cluster.evictions)))
        if is_refused:
            del self.cluster.evictions[uid]
            self.cluster.pods.eviction_failed(uid)
            self.cluster.pods.flush()
        else:
            self.forget(uid)
        self.go_on()

    def forget(self, uid: str) -> None:
        self.ordered.discard(uid)
        name = group_name(self.cluster.objects[uid])
        self.cluster.remove(uid)
        if name and not any(group_name(each) == name for each in self.cluster.objects.values()):
            self.succeeded[name] = 0

    @precondition(lambda self: self.cluster.objects)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        self.forget(data.draw(st.sampled_from(sorted(self.cluster.objects))))
        self.go_on()

    @precondition(lambda self: self.cluster.bound)
    @rule(data=st.data(), phase=st.sampled_from(("Succeeded", "Failed")))
    def end(self, data: st.DataObject, phase: str) -> None:
        uid = data.draw(st.sampled_from(sorted(self.cluster.bound)))
        name = group_name(self.cluster.objects[uid])
        self.cluster.evictions.pop(uid, None)
        self.ordered.discard(uid)
        self.cluster.end(uid, phase)
        is_alone = not any(group_name(each) == name for each in self.cluster.objects.values())
        self.succeeded[name] = 0 if is_alone else self.succeeded[name] + (phase == "Succeeded")
        self.go_on()

    @precondition(lambda self: len(self.cluster.nodes) > 1)
    @rule(data=st.data())
    def lose_a_node(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.cluster.nodes)))
        there = [uid for uid, where in self.cluster.bound.items() if where == name]
        self.cluster.remove_node(name)
        for uid in there:
            self.forget(uid)
        for uid, where in list(self.cluster.binds.items()):
            if where == name:
                self.cluster.refuse(uid)
        self.go_on()

    @precondition(lambda self: len(self.cluster.nodes) < 4)
    @rule()
    def add_a_node(self) -> None:
        self.made += 1
        self.cluster.add_node(f"more-{self.made}")
        self.go_on()

    @rule(allowed=st.integers(0, 2))
    def change_the_budget(self, allowed: int) -> None:
        self.cluster.add_budget(allowed)
        self.go_on()

    @rule()
    def fail_an_engine(self) -> None:
        self.cluster.world.commit()
        self.cluster.build()
        self.go_on()

    @rule()
    def start_another_server(self) -> None:
        self.ordered -= {uid for uid in self.ordered if uid not in self.cluster.bound}
        self.succeeded.clear()
        self.cluster.nodes = dict(self.cluster.nodes)
        self.cluster.start()
        self.go_on()

    @invariant()
    def no_node_has_more_than_it_can(self) -> None:
        used: Counter[str] = Counter()
        for uid, each in self.cluster.objects.items():
            where = each.spec.node_name or self.cluster.binds.get(uid, "")
            used[where] += int(each.spec.containers[0].resources.requests["cpu"])
        assert all(used[name] <= 4 for name in self.cluster.nodes)

    @invariant()
    def what_is_chosen_is_chosen_for_all(self) -> None:
        for tracked in self.cluster.pods.pods.values():
            gang = tracked.gang
            if gang is None:
                continue
            assert gang.members[tracked.uid] is tracked
            if gang.is_placing(tracked):
                assert tracked.job == gang.job
                assert tracked.state in (PodState.WAITING, PodState.CLAIMED, PodState.HELD)
            assert (tracked.uid in gang.able) <= (tracked.state is PodState.OUTSIDE)

    def finish(self) -> None:
        """With room for all, all that are complete are bound."""
        for at in range(40):
            self.cluster.add_node(f"last-{at}")
        for _ in range(30):
            for uid in list(self.cluster.evictions):
                self.forget(uid)
            self.cluster.bind_all()
            self.cluster.go_on(10)
            if not (self.cluster.binds or self.cluster.evictions):
                break
        waiting = self.cluster.objects.keys() - self.cluster.bound.keys()
        for uid in waiting:
            name = group_name(self.cluster.objects[uid])
            assert name, f"{uid} has no node"
            assert (
                self.placed(name)
                + sum(group_name(self.cluster.objects[each]) == name for each in waiting)
                < SIZES[name]
            ), f"{uid} waits: {self.cluster.pods.pods[uid]}"


def group_name(each: Pod) -> str:
    name = group_of(each)
    return "" if name is None else name.name


class FinishedGangMachine(GangMachine):
    def teardown(self) -> None:
        try:
            self.finish()
        finally:
            super().teardown()


TestGangs = FinishedGangMachine.TestCase
TestGangs.settings = settings(
    max_examples=30,
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
