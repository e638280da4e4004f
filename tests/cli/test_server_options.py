"""Where servers are, what they keep, and what they are told of Kubernetes, without serving."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from command_line import REPOSITORY, Call

from argosy.cli import kubernetes_shadow, server_start, up
from argosy.cli.kubernetes import _lease_namespace
from argosy.kubernetes.leases import lease_settings
from argosy.service import scheduling, server
from argosy.service.agent import AgentOptions
from argosy.service.kubernetes import rights, serving
from argosy.service.kubernetes.serving import KubernetesOptions
from argosy.service.retention import KeptJobs

SERVERS = (("up",), ("agent",), ("scheduler", "--agent", "unix:a"))
CLUSTERS = REPOSITORY / "scenarios" / "vela.toml"
KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: c
contexts:
- {name: c, context: {cluster: k, user: u, namespace: shop}}
- {name: d, context: {cluster: other, user: u}}
clusters:
- {name: k, cluster: {server: "http://127.0.0.1:1"}}
- {name: other, cluster: {server: "http://127.0.0.1:2"}}
users: [{name: u, user: {}}]
"""


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The options of servers that would have been started, and who would have said so."""
    given: list[Any] = []

    def serve(options: Any, ready: Any, log: Any) -> bool:
        given.extend((options, ready))
        log("a line")
        return False

    monkeypatch.setattr(server, "serve", serve)
    monkeypatch.setattr(scheduling, "serve_scheduler", serve)
    monkeypatch.setattr(serving, "serve_kubernetes", serve)
    monkeypatch.setattr(rights, "own_identity", lambda: "host-7")
    for name in ("ARGOSY_TOKEN", "ARGOSY_DIR", "KUBECONFIG"):
        monkeypatch.delenv(name, raising=False)
    return given


class TestKept:
    @pytest.mark.parametrize("command", SERVERS)
    @pytest.mark.parametrize(
        ("options", "kept"),
        [
            ((), KeptJobs()),
            (("--keep-jobs", "1"), KeptJobs(jobs=1)),
            (("--keep-for", "2h"), KeptJobs(age=7_200_000_000)),
            (("--keep-jobs", "9", "--keep-for", "1s"), KeptJobs(jobs=9, age=1_000_000)),
        ],
    )
    def test_old_jobs_are_kept_as_told(
        self,
        argosy: Call,
        served: list[Any],
        command: tuple[str, ...],
        options: tuple[str, ...],
        kept: KeptJobs,
    ) -> None:
        assert argosy(*command, "--dir", "kept", *options).code == 0
        told = served[0].server if command[0] == "scheduler" else served[0]
        assert told.kept == kept

    def test_nothing_less_than_a_job_and_a_time_with_its_unit(
        self, argosy: Call, served: list[Any]
    ) -> None:
        assert (
            "'--keep-jobs': 0 is not in the range x>=1"
            in argosy("up", "--keep-jobs", "0").complaint
        )
        assert "--keep-for '3'; expected " in argosy("up", "--keep-for", "3").complaint
        assert served == []


class TestDetaching:
    @pytest.mark.parametrize("command", SERVERS)
    @pytest.mark.parametrize(("form", "as_json"), [("text", False), ("json", True)])
    def test_a_server_in_the_background_gets_the_same_arguments(
        self,
        argosy: Call,
        served: list[Any],
        monkeypatch: pytest.MonkeyPatch,
        command: tuple[str, ...],
        form: str,
        as_json: bool,
    ) -> None:
        started: list[Any] = []

        def detached(arguments: list[str], directory: Any, *, as_json: bool) -> None:
            started.append((arguments, directory, as_json))

        monkeypatch.setattr(server_start, "detached", detached)
        monkeypatch.setattr("sys.argv", ["/bin/argosy", "as", "typed"])
        assert argosy(*command, "-d", "--dir", "kept", "-o", form).code == 0
        assert started == [(["as", "typed"], Path("kept"), as_json)]
        assert served == []

    def test_only_a_cluster_of_this_computer_has_a_directory_of_its_own(
        self, argosy: Call, served: list[Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        started: list[Any] = []
        monkeypatch.setattr(
            server_start,
            "detached",
            lambda arguments, directory, as_json: started.append(directory),
        )
        monkeypatch.setenv("XDG_STATE_HOME", "/state")
        for command in SERVERS:
            argosy(*command, "-d")
        assert started == [Path("/state/argosy"), None, None]

    @pytest.mark.parametrize("command", [*SERVERS, ("kubernetes",)])
    def test_without_the_library_of_servers_nothing_is_tried(
        self,
        argosy: Call,
        served: list[Any],
        monkeypatch: pytest.MonkeyPatch,
        command: tuple[str, ...],
    ) -> None:
        monkeypatch.setattr(server_start.importlib.util, "find_spec", lambda name: None)
        told = argosy(*command).complaint
        assert told.startswith(f"argosy: error[missing-extra]: argosy {command[0]} needs the extra")
        assert served == []


class TestPlaces:
    @pytest.mark.parametrize("command", ["up", "agent"])
    def test_a_cluster_is_somewhere(self, argosy: Call, served: list[Any], command: str) -> None:
        where = ("--place", "vienna", "--location", "48.2,16.4")
        assert argosy(command, "--dir", "kept", *where).code == 0
        assert served[0].agent == AgentOptions(place="vienna", location="48.2,16.4")
        assert argosy(command, "--dir", "kept").code == 0
        assert served[2].agent == AgentOptions()

    def test_a_scheduler_is_somewhere_and_knows_distances(
        self, argosy: Call, served: list[Any]
    ) -> None:
        some = ("--distance", "vienna<>rome=9ms", "--distance", " a b <> c = 2s ")
        argosy("scheduler", "--agent", "unix:a", "--place", "graz", *some)
        assert served[0].place == "graz"
        assert served[0].distances == {"vienna<>rome": 9_000, "a b<>c": 2_000_000}
        argosy("scheduler", "--agent", "unix:a", "--distance", "a<>b=0")
        assert (served[2].place, served[2].distances) == ("", {"a<>b": 0})

    @pytest.mark.parametrize(
        ("options", "told"),
        [
            (("up", "--place", "x" * 201), "--place 'xxx"),
            (("up", "--place", "a<>b"), "--place 'a<>b'; expected a name such as vienna"),
            (("up", "--place", "a=b"), "--place 'a=b'; expected a name such as vienna"),
            (("agent", "--place", "a\tb"), "; expected a name such as vienna"),
            (
                ("up", "--location", "north"),
                "--location 'north'; expected latitude and longitude in degrees, such as 48.2,16.4",
            ),
            (("agent", "--location", "91,0"), "--location '91,0'; expected latitude"),
            ((*SERVERS[2], "--place", "a=b"), "--place 'a=b'; expected a name such as vienna"),
            *(
                (
                    (*SERVERS[2], "--distance", text),
                    f"--distance '{text}'; expected such as vienna<>",
                )
                for text in ("a=3s", "<>b=3s", "a<>=3s", "a<>b", "a<>b=", "")
            ),
            ((*SERVERS[2], "--distance", "a<>b=soon"), "--distance 'soon'"),
            ((*SERVERS[2], "--distance", "a<>b<>c=1s"), "--place 'b<>c'; expected a name"),
        ],
    )
    def test_what_is_no_place_is_refused(
        self, argosy: Call, served: list[Any], options: tuple[str, ...], told: str
    ) -> None:
        assert told in argosy(*options).complaint
        assert served == []

    def test_a_name_may_be_as_long_as_200_letters(self, argosy: Call, served: list[Any]) -> None:
        assert argosy("up", "--dir", "kept", "--place", "x" * 200).code == 0
        assert served[0].agent.place == "x" * 200


class TestAgents:
    def test_an_agent_has_the_machines_of_one_cluster(
        self, argosy: Call, served: list[Any]
    ) -> None:
        assert argosy("agent", CLUSTERS, "--cluster", "edge-graz").code == 0
        cluster = served[0].cluster
        assert (cluster.name, [each.engine for each in cluster.fleet]) == ("edge-graz", ["omega"])
        assert len(cluster.cell.machines) == 40
        assert {each.attributes["location"] for each in cluster.cell.machines} == {"47.07,15.44"}
        argosy("agent", CLUSTERS, "--cluster", "cloud", "--name", "mine", "--engine", "sparrow")
        cluster = served[2].cluster
        assert (cluster.name, [each.engine for each in cluster.fleet]) == ("mine", ["sparrow"])
        assert len(cluster.cell.machines) == 20

    def test_an_agent_has_all_machines_of_a_scenario_by_default(
        self, argosy: Call, served: list[Any]
    ) -> None:
        argosy("agent", CLUSTERS)
        assert (served[0].cluster.name, len(served[0].cluster.cell.machines)) == ("agent", 100)

    def test_a_cluster_that_is_not_there_is_told_with_those_that_are(
        self, argosy: Call, served: list[Any]
    ) -> None:
        told = argosy("agent", CLUSTERS, "--cluster", "edge-gratz").complaint
        assert "unknown cluster 'edge-gratz'" in told
        assert "did you mean 'edge-graz'?" in told
        quickstart = REPOSITORY / "scenarios" / "quickstart.toml"
        assert "unknown cluster 'c'" in argosy("agent", quickstart, "--cluster", "c").complaint

    def test_an_engine_that_does_not_fit_is_named(self, argosy: Call, served: list[Any]) -> None:
        told = argosy("agent", "--engine", "omgea").complaint
        assert told.startswith("argosy: error[unknown-engine]: ")
        assert argosy("up", "--dir", "kept", "--engine", "omgea").complaint == told

    @pytest.mark.parametrize("mix", ["x8GiB", "4x", "4.x8GiB", "4x8", "4x8GiBx", "-4x8GiB"])
    def test_a_size_is_cores_and_memory(self, argosy: Call, served: list[Any], mix: str) -> None:
        assert argosy("agent", "--mix", mix).code == 2
        assert served == []

    def test_a_scenario_does_not_change_a_cluster_that_is_kept(
        self, argosy: Call, served: list[Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("argosy.worlds.local.store.holds_cluster", lambda directory: True)
        assert "kept holds a cluster" in argosy("agent", CLUSTERS, "--dir", "kept").complaint
        # Without a directory, nothing is kept.
        assert argosy("agent", CLUSTERS).code == 0


class TestKubernetes:
    @pytest.fixture
    def kubeconfig(self, tmp_path: Path) -> Path:
        path = tmp_path / "config"
        path.write_text(KUBECONFIG)
        return path

    def test_every_option_reaches_the_scheduler(
        self, argosy: Call, served: list[Any], kubeconfig: Path
    ) -> None:
        told = argosy(
            *("kubernetes", "--kubeconfig", kubeconfig, "--context", "d", "--name", "x"),
            *("--engine", "kube", "--engine", "murmuration", "--no-events", "--no-explain"),
            *("--leader-elect", "--lease-duration", "30", "--queue", "shortest-first", "--agent"),
            *("--grow-jobs", "global-cap=0.5", "--dir", "kept", "--listen", "h:5", "-o", "json"),
        )
        assert (told.code, told.err) == (0, "argosy: a line\nargosy: down\n")
        options, ready = served
        assert ready is up.announce_json
        assert options.connection.server == "http://127.0.0.1:2"
        assert options.fleet == (
            {"name": "kube", "engine": "kube"},
            {"name": "murmuration", "engine": "murmuration"},
        )
        assert (options.name, options.writes_events, options.explains) == ("x", False, False)
        assert (options.machines.queue, options.serves_commits) == ("shortest-first", True)
        assert (options.growth.policy, options.growth.cap) == ("global-cap", 0.5)
        assert (options.server.directory, options.server.is_lasting) == (Path("kept"), False)
        assert (options.server.host, options.server.port) == ("h", 5)
        election = options.election
        assert (election.name, election.namespace, election.identity) == (
            "x",
            "kube-system",
            "host-7",
        )
        assert election.settings == lease_settings(30)

    def test_the_defaults(self, argosy: Call, served: list[Any], kubeconfig: Path) -> None:
        assert argosy("kubernetes", "--kubeconfig", kubeconfig).code == 0
        options, ready = served
        assert ready is up.announce
        assert options.connection.server == "http://127.0.0.1:1"
        plain = KubernetesOptions(
            connection=options.connection,
            fleet=({"name": "omega", "engine": "omega"},),
            server=options.server,
        )
        assert options == plain
        assert (options.server.host, options.server.port) == ("127.0.0.1", 0)
        assert not options.server.directory.exists()

    def test_a_lease_is_named_and_placed(
        self, argosy: Call, served: list[Any], kubeconfig: Path, tmp_path: Path
    ) -> None:
        (tmp_path / "fleet.toml").write_text('[[fleet]]\nname = "a"\nengine = "omega"\n')
        argosy(
            *("kubernetes", "--kubeconfig", kubeconfig, "--leader-elect", "--lease-name", "l"),
            *("--lease-namespace", "n", "--identity", "me", "--fleet", "fleet.toml"),
        )
        election = served[0].election
        assert (election.name, election.namespace, election.identity) == ("l", "n", "me")
        assert election.settings == lease_settings(15)
        assert served[0].fleet == ({"name": "a", "engine": "omega"},)

    def test_a_pod_keeps_its_lease_where_it_is(self) -> None:
        for origin, expected in (("service account", "mine"), ("context c", "kube-system")):
            connection: Any = SimpleNamespace(namespace="mine", origin=origin)
            assert _lease_namespace(connection) == expected

    @pytest.mark.parametrize("duration", ["1", "0"])
    def test_a_lease_lasts_two_seconds_at_least(self, argosy: Call, duration: str) -> None:
        told = argosy("kubernetes", "--leader-elect", "--lease-duration", duration).complaint
        assert f"{duration} is not in the range x>=2" in told

    def test_a_shadow_gets_engines_and_a_time(
        self,
        argosy: Call,
        served: list[Any],
        kubeconfig: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        cast: list[Any] = []

        def shadow(connection: Any, fleet: Any, duration: Any, *, as_json: bool) -> None:
            cast.append((connection.server, fleet, duration, as_json))

        monkeypatch.setattr(kubernetes_shadow, "shadow_cluster", shadow)
        base = ("kubernetes", "--shadow", "--kubeconfig", kubeconfig)
        assert argosy(*base, "--engine", "kube", "--for", "3s", "-o", "json").code == 0
        assert argosy(*base).code == 0
        at = "http://127.0.0.1:1"
        assert cast == [
            (at, [{"name": "kube", "engine": "kube"}], "3s", True),
            (at, [{"name": "omega", "engine": "omega"}], None, False),
        ]
        assert served == []

    def test_mistakes_are_found_before_anything_is_asked(
        self, argosy: Call, served: list[Any], kubeconfig: Path
    ) -> None:
        told = argosy("kubernetes", "--kubeconfig", kubeconfig, "--grow-jobs", "always").complaint
        assert "--grow-jobs 'always' is no policy; expected max-parallelism, " in told
        told = argosy("kubernetes", "--kubeconfig", kubeconfig, "--context", "e").complaint
        assert "'e'" in told
        assert served == []
