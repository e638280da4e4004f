"""Draws what users and schedulers elsewhere send to a server: mostly right, sometimes wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from argosy.campaign.dice import Dice

GIB = 2**30
FATES = (
    "1:0", "3:0", "8:0", "20:0", "0.2:0", "0:0", "0:1", "-", "-", "2:3,5:0", "1:1,1:-9,1:0",
    "5:-15", "2:?,2:0", "0.5:127", "70:0", "1:2",
)  # fmt: skip
#: Changes of a job's table, each of which makes it a wrong one.
WRONG_KEYS: tuple[dict[str, Any], ...] = (
    {"count": 0},
    {"count": -2},
    {"count": "3"},
    {"count": 1.5},
    {"count": 10_000_000_000},
    {"request": {}},
    {"request": {"cpu": -1}},
    {"request": {"cpu": "lots"}},
    {"request": {"cpu": 99_000_000}},
    {"request": {"gpus": 1, "cpu": 1}},
    {"request": {"memory": "1 parsec"}},
    {"request": [1]},
    {"command": []},
    {"command": None},
    {"command": 'echo "'},
    {"command": ["play", "\x00"]},
    {"comand": ["play"]},
    {"image": "busybox"},
    {"duration": "3s"},
    {"durations": ["3s"]},
    {"phases": []},
    {"submit": "0s"},
    {"id": ""},
    {"id": "."},
    {"id": ".."},
    {"id": "two words"},
    {"id": "x" * 300},
    {"id": 7},
    {"kind": ""},
    {"kind": "a b"},
    {"owner": "\n"},
    {"retries": -1},
    {"retries": 10_000_000},
    {"backoff": "soon"},
    {"backoff": -1},
    {"timeout": "-1s"},
    {"grace": "1 year"},
    {"output_limit": -5},
    {"estimate": "3 parsecs"},
    {"estimate": -1},
    {"precedence": 1.5},
    {"precedence": 10**30},
    {"gang": "yes"},
    {"gang": None},
    {"tags": "web"},
    {"tags": ["a b"]},
    {"tags": ["web", "web"]},
    {"requires": {"arch": 1}},
    {"requires": {"a b": "x"}},
    {"requires": {"arch": "pdp11"}},
    {"prefers": ["arch"]},
    {"demands": {"": "x"}},
    {"environment": {"A=B": "x"}},
    {"environment": {"A": 1}},
    {"working_directory": 5},
    {"stdin": 5},
    {"constraints": "w -> {w, 0, 0} in machine"},
    {"constraints": ["w -> nonsense"]},
    {"constraints": ["web -> {web, 0, 0} in nowhere"]},
    {"constraints": ["web -> {web, 2, 1} in machine"]},
    {"constraints": ["web -> {web, 0, 0} in machine weight -1"]},
    {"groups": []},
    {"groups": [{"command": "x"}]},
    {"groups": [{"request": {"cpu": 1}}]},
    {"groups": {"a": 1}},
    {"groups": [{"request": {"cpu": 1}, "command": "x", "duration": "1s"}]},
    {"endless": "yes"},
    {"program": 7},
    {"name": "x" * 5_000},
    {"name": 7},
)
#: Documents that are no tables of jobs at all.
NO_TABLES: tuple[Any, ...] = (
    None, [], 5, "job", True, {}, [{}], b"{", b"", b"\xff\xfe", b"nul", b"[" * 5_000, b"{}{}",
)  # fmt: skip
WRONG_QUERIES = (
    "limit=0", "limit=-1", "limit=1001", "limit=x", "limit=", "limit=3&limit=4", "after=x",
    "after=-1", "after=99999999999999999999", "state=nothing", "state=", "open=maybe", "stat=running",
    "limt=3", "match=" + "x" * 201, "last=1001", "last=-1", "after=now&last=3", "after=1.2.3",
    "after=999999", "after=1.x", "job=nobody", "stream=stdin", "try=0", "try=x", "try=9999",
    "offset=-1", "offset=1&tail=1", "tail=x", "follow=2", "life=0", "life=99", "life=x", "%ff=1",
)  # fmt: skip
GOOD_QUERIES = {
    "/v1/jobs": (
        "open=true", "open=false", "open=1", "state=running", "state=failed", "state=pending&limit=1",
        "kind=batch", "kind=service&owner=ann", "owner=bob", "match=j", "match=job-1", "match=%22",
        "match=the%20", "match=", "after=3", "after=0", "limit=1000", "state=finished&open=true",
        "state=cancelled", "state=abandoned", "owner=",
    ),
    "/v1/tasks": (
        "state=running", "state=queued", "state=pending", "machine=t0-0", "machine=nowhere",
        "state=running&machine=t0-0", "state=pending&machine=t0-1", "state=queued&limit=1",
        "after=2.0", "after=1", "limit=2&state=pending", "after=3.5&state=running",
    ),
    "/v1/machines": ("limit=1", "limit=1000", "after=t0-0", "after=nowhere", "after=extra-1&limit=2"),
    "/v1/events": ("after=0", "after=now", "last=0", "last=1", "last=7", "last=1000", "after=2",
                   "after=1.0", "after=3.1", "job=j1&after=0", "job=job-1&last=50", ""),
}  # fmt: skip
LOG_QUERIES = (
    "", "stream=stderr", "offset=0", "offset=10", "offset=2000", "offset=5000", "tail=0", "tail=5",
    "tail=100000", "try=1", "try=3", "follow=true", "follow=true&stream=stderr&tail=20", "follow=false",
)  # fmt: skip
PLACES = ("48.2,16.4", "40.7,-74", "-33.9,151.2", "0,0", "90,0", "nowhere", "91,0")


class Documents:
    """`capacities` are those of machines, `attributes` their values by name."""

    def __init__(
        self,
        dice: Dice,
        capacities: Sequence[Mapping[str, int]],
        attributes: Mapping[str, Sequence[str]],
        groups: Sequence[str],
    ) -> None:
        self.dice = dice
        self._capacities = list(capacities)
        self._attributes = dict(attributes)
        self._groups = list(groups)
        self._made = 0

    def amounts(self) -> dict[str, int]:
        dice = self.dice
        machine = dice.one_of(self._capacities)
        if dice.chance(0.05):
            return {name: 2 * amount for name, amount in machine.items()}
        parts = {
            name: amount // dice.one_of((16, 8, 4, 3, 2, 1)) for name, amount in machine.items()
        }
        if dice.chance(0.3):
            parts = {"cpu": parts.get("cpu", 0)}
        return {name: amount for name, amount in parts.items() if amount} or {"cpu": 1}

    def request(self) -> dict[str, Any]:
        """Sometimes with units."""
        found: dict[str, Any] = dict(self.amounts())
        if "cpu" in found and self.dice.chance(0.2):
            found["cpu"] = f"{found['cpu']}m"
        if "memory" in found and self.dice.chance(0.2):
            found["memory"] = f"{max(1, found['memory'] >> 20)}MiB"
        return found

    def wish(self) -> dict[str, str]:
        if not self._attributes:
            return {}
        name = self.dice.one_of(sorted(self._attributes))
        return {name: self.dice.one_of((*self._attributes[name], "none"))}

    def demands(self) -> dict[str, str]:
        dice = self.dice
        options: tuple[dict[str, str], ...] = (
            {"location": dice.one_of(PLACES)},
            {
                "location": dice.one_of(PLACES),
                "distance": dice.one_of(("1", "7000", "x", "0", "30000")),
            },
            {"battery": dice.one_of(("50", "0", "full", "-1"))},
            {
                "latency": dice.one_of(("1", "50", "x")),
                "near": dice.one_of(("east", "local", "away")),
            },
            {"latency": "80", "near_job": dice.one_of(("j1", "j2"))},
            {
                "objective": dice.one_of(("20", "200", "x", "0")),
                "users": "east=2,west=1",
                "work": "5",
            },
            {"objective": "100", "users": dice.one_of(("east", "east=x", "")), "work": "x"},
            {
                "volume": dice.one_of(("v1", "v2")),
                "volume_scope": dice.one_of(("machine", "cluster")),
            },
            {"volume": dice.one_of(("v1", "v3"))},
            {"batch_share": dice.one_of(("0.5", "0.9", "x", "0", "1"))},
        )
        return dict(dice.one_of(options))

    def group(self, kind: str) -> dict[str, Any]:
        dice = self.dice
        fate = "-" if kind == "service" and dice.chance(0.6) else dice.one_of(FATES)
        table: dict[str, Any] = {"request": self.request(), "command": ["play", fate]}
        if dice.chance(0.6):
            table["count"] = dice.one_of((1, 2, 2, 3, 4, 6, 12))
        for name, chance, options in (
            ("retries", 0.4, (0, 1, 3)),
            ("backoff", 0.2, (0, "500ms", 2_000_000, "4s")),
            ("estimate", 0.3, ("1s", 5_000_000, "0s", "1h", "90s")),
            ("timeout", 0.1, ("10s", 0)),
            ("grace", 0.1, ("1s", 0)),
            ("output_limit", 0.1, (0, 100, 1 << 20)),
            ("environment", 0.1, ({"A": "1"}, {"A": "", "B": "ü"})),
            ("working_directory", 0.1, ("/tmp", "")),
            ("stdin", 0.1, ("text\n", "")),
        ):
            if dice.chance(chance):
                table[name] = dice.one_of(options)
        if dice.chance(0.15):
            table["requires"] = self.wish()
        if dice.chance(0.1):
            table["prefers"] = self.wish()
        if dice.chance(0.1):
            table["demands"] = self.demands()
        if kind == "service" or dice.chance(0.1):
            table["tags"] = dice.some_of(("web", "db", "cache"), 0)
        if dice.chance(0.08):
            table["endless"] = dice.chance(0.5)
        return table

    def job(self, *, has_id: float = 0.6) -> dict[str, Any]:
        dice = self.dice
        self._made += 1
        kind = dice.one_of(("batch", "batch", "batch", "service", "query"))
        table: dict[str, Any] = {}
        if dice.chance(has_id):
            table["id"] = f"j{self._made}"
        if kind != "batch" or dice.chance(0.2):
            table["kind"] = kind
        for name, chance, options in (
            ("precedence", 0.35, (-3, 0, 1, 5, 10)),
            ("gang", 0.2, (True, True, False)),
            ("owner", 0.3, ("ann", "bob", "")),
            ("program", 0.1, ("sort",)),
            ("name", 0.3, ('the "first"', "ünder", f"the job {self._made}")),
        ):
            if dice.chance(chance):
                table[name] = dice.one_of(options)
        if dice.chance(0.2):
            groups = [self.group(kind) for _ in range(dice.among(1, 3))]
            return table | {"groups": groups}
        table |= self.group(kind)
        if kind == "service" and dice.chance(0.5):
            table["constraints"] = [self.constraint(table.get("tags") or ["web"])]
        return table

    def constraint(self, tags: Sequence[str]) -> str:
        dice = self.dice
        subject, group = dice.one_of(tags), dice.one_of(self._groups)
        other = dice.one_of(("web", "db", "cache"))
        return dice.one_of(
            (
                f"{subject} -> {{{subject}, 0, {dice.among(0, 2)}}} in {group}",
                f"{subject} -> {{{other}, 0, 0}} in {group} weight 2.5",
                f"{subject} -> {{{other}, 1, inf}} in {group}",
                f"{subject} -> spread {{1, {dice.among(1, 3)}}} over {group}",
            )
        )

    def wrong_job(self) -> Any:
        dice = self.dice
        if dice.chance(0.2):
            return dice.one_of(NO_TABLES)
        table = self.job()
        for _ in range(dice.one_of((1, 1, 2))):
            table |= dice.one_of(WRONG_KEYS)
        if "groups" not in table and dice.chance(0.1):
            del table[dice.one_of(sorted(table))]
        return table

    def machine(self) -> dict[str, Any]:
        dice = self.dice
        table: dict[str, Any] = {
            "name": f"extra-{dice.among(1, 4)}",
            "capacity": dict(dice.one_of(self._capacities)),
        }
        if dice.chance(0.4):
            table["capacity"] = {"cpu": dice.among(1, 9), "memory": f"{dice.among(1, 32)}GiB"}
        if dice.chance(0.6):
            table["attributes"] = {
                **self.wish(),
                "location": dice.one_of(PLACES),
                "battery": dice.one_of(("10", "75", "100", "x", "")),
                "speed": dice.one_of(("1", "0.5", "2", "x")),
                **({"volumes": dice.one_of(("v1", "v1,v2"))} if dice.chance(0.5) else {}),
            }
        if dice.chance(0.3):
            joined = dice.one_of(self._groups)
            if joined != "machine":
                table["joins"] = {joined: [f"{joined}-0"]}
        return table

    def wrong_machine(self) -> Any:
        dice = self.dice
        return self.machine() | dice.one_of(
            (
                {"name": ""},
                {"name": "a b"},
                {"name": ".."},
                {"name": 3},
                {"count": 2},
                {"count": 0},
                {"capacity": {}},
                {"capacity": {"cpu": -1}},
                {"capacity": {"cpu": 1, "a b": 2}},
                {"capacity": {"cpu": "many"}},
                {"capacity": {f"r{at}": 1 for at in range(9)}},
                {"attributes": {"a b": "x"}},
                {"attributes": {"a": "\n"}},
                {"attributes": ["a"]},
                {"joins": {"a b": ["x"]}},
                {"joins": {"rack": ["x y"]}},
                {"joins": {"machine": ["x"]}},
                {"jions": {}},
                {"name": "t0-0"},
            )
        )

    def patch(self) -> Any:
        dice = self.dice
        return dice.one_of(
            (
                {"draining": True},
                {"draining": False},
                {"draining": True},
                {"draining": False},
                {"capacity": dict(dice.one_of(self._capacities))},
                {"capacity": {"cpu": dice.among(1, 20), "memory": "3GiB"}},
                {"capacity": {"cpu": "500m"}, "draining": dice.chance(0.5)},
                {},
                {"capacity": {}},
                {"capacity": {"cpu": -3}},
                {"capacity": {"two words": 3}},
                {"draining": "yes"},
                {"draning": True},
            )
        )

    def sample(self) -> dict[str, Any]:
        dice = self.dice
        table: dict[str, Any] = {"request": self.amounts()}
        filters = (
            "ResourcesFit",
            "GeoLocation",
            "BatteryLevel",
            "NetworkLatency",
            "Volume",
            "BatchShare",
        )
        scores = (
            "ResourcesFit", "GeoLocation", "BatteryLevel", "NetworkLatency", "ServiceLevel", "Volume",
        )  # fmt: skip
        if dice.chance(0.3):
            table["requires"] = self.wish()
        if dice.chance(0.6):
            table["demands"] = self.demands() | (self.demands() if dice.chance(0.3) else {})
        if dice.chance(0.6):
            table["filters"] = dice.some_of(filters, 0)
        if dice.chance(0.6):
            table["scores"] = dice.some_of(scores, 0)
        for name, chance, options in (
            ("share", 0.3, (0, 0.2, 0.5, 1, 1.0)),
            ("count", 0.7, (1, 2, 3, 5, 50)),
            ("strategy", 0.6, ("Random", "RoundRobin", "Learned")),
            ("rounds", 0.3, (0, 1, 3)),
            ("limit", 0.1, (1_000_000,)),
            ("free", 0.5, (True, False)),
            ("overshoot", 0.4, ("keep", "cut")),
            ("repeats", 0.4, ("drop", "keep")),
            ("distances", 0.4, ({"east": 20_000}, {"east": 5_000, "west": 90_000, "local": 100})),
            ("jobs", 0.3, ({"j1": ["east"]}, {"j1": [], "j2": ["west", "east"]})),
        ):
            if dice.chance(chance):
                table[name] = dice.one_of(options)
        return table

    def wrong_sample(self) -> Any:
        dice = self.dice
        return self.sample() | dice.one_of(
            (
                {"count": 0}, {"count": 100_001}, {"count": "x"}, {"share": 1.5}, {"share": -0.1},
                {"strategy": "Rando"}, {"strategy": ""}, {"filters": ["ResourceFit"]},
                {"filters": ["Bind"]}, {"scores": ["Nothing"]}, {"filters": "ResourcesFit"},
                {"rounds": 1_001}, {"limit": -1}, {"free": "yes"}, {"overshoot": "trim"},
                {"repeats": "once"}, {"request": {"cpu": -1}}, {"request": {"cpu": "1"}},
                {"request": None}, {"sahre": 1}, {"distances": {"": 1}}, {"jobs": {"j1": "east"}},
                {"request": {"unicorns": 3}}, {"request": {f"r{at}": 1 for at in range(9)}},
                {"requires": {"arch": 5}},
            )
        )  # fmt: skip

    def order(self, machines: Sequence[str]) -> dict[str, Any]:
        dice = self.dice
        self._made += 1
        fate = dice.one_of(FATES)
        job: dict[str, Any] = {"id": f"c{self._made}", "request": self.amounts()}
        job |= {"command": ["play", fate]}
        if dice.chance(0.2):
            job["requires"] = self.wish()
        if dice.chance(0.3):
            job["demands"] = self.demands()
        if dice.chance(0.2):
            job["retries"] = 2
        if dice.chance(0.2):
            job |= {"kind": "service", "precedence": dice.among(0, 9)}
        chosen = [dice.one_of((*machines, "nowhere")) for _ in range(dice.among(1, 3))]
        order: dict[str, Any] = {"job": job, "machines": chosen}
        if dice.chance(0.3):
            order["checks"] = dice.some_of(("ResourcesFit", "Volume", "BatchShare"), 0)
        if dice.chance(0.3):
            order["reservations"] = dice.one_of(("earlier", "all"))
        return order

    def wrong_order(self, machines: Sequence[str]) -> dict[str, Any]:
        dice, order = self.dice, self.order(machines)
        if dice.chance(0.5):
            order["job"] = order["job"] | dice.one_of(
                (
                    {"id": None},
                    {"count": 2},
                    {"constraints": ["web -> {web, 0, 0} in machine"], "tags": ["web"]},
                    *WRONG_KEYS[:20],
                )
            )
            return order
        return order | dice.one_of(
            (
                {"machines": []}, {"machines": [""]}, {"machines": "t0-0"}, {"checks": ["Fit"]},
                {"commit": "Tie"}, {"commit": ""}, {"reservations": "none"}, {"reservation": "r999"},
                {"reservation": ""}, {"job": []}, {"job": {}}, {"jobs": {}},
            )
        )  # fmt: skip
