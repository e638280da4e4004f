"""Quantities, objects, kubeconfigs and credentials, well-formed and not, are read as before. Of each
outcome a digest is kept."""

from __future__ import annotations

import asyncio
import base64
import stat
from collections.abc import Callable, Coroutine
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
from drawn_pods import DrawnObjects
from pinned_digests import require_digests

from argosy.kubernetes import kinds, quantities
from argosy.kubernetes.batch import BATCH_JOBS
from argosy.kubernetes.connection import Connection, connection_in_cluster, proxy_for
from argosy.kubernetes.credentials import Credentials, PluginCredentials, RotatedToken, Secret
from argosy.kubernetes.failures import failure, is_budget
from argosy.kubernetes.kubeconfig import Kubeconfig, load_connection
from argosy.kubernetes.requests import status_in
from argosy.model.errors import ArgosyError

PINNED = Path(__file__).parent / "pinned"
KINDS = (
    kinds.PODS,
    kinds.NODES,
    kinds.NAMESPACES,
    kinds.PRIORITY_CLASSES,
    kinds.POD_DISRUPTION_BUDGETS,
    kinds.POD_GROUPS,
    kinds.COSCHEDULING_GROUPS,
    kinds.WORKLOADS,
    kinds.PERSISTENT_VOLUMES,
    kinds.PERSISTENT_VOLUME_CLAIMS,
    kinds.STORAGE_CLASSES,
    kinds.LEASES,
    kinds.EVENTS,
    BATCH_JOBS,
)


READERS: tuple[Callable[[str], object], ...] = (
    quantities.nanos,
    quantities.whole_units,
    quantities.milli_units,
    quantities.canonical,
)
SOURCES = ("persistentVolumeClaim", "emptyDir", "downwardAPI", "nfs", "csi", "novel", "configMap")


def plain(value: Any) -> str:
    return msgspec.json.encode(value, order="sorted", enc_hook=repr).decode()


def tried(act: Callable[[], object]) -> str:
    """What it gives, or the whole error."""
    try:
        return repr(act())
    except ArgosyError as error:
        fields = {key: each for key, each in vars(error).items() if each is not None}
        return f"{type(error).__name__} {error} {sorted(map(str, fields.items()))}"
    except (ValueError, TypeError, KeyError) as error:
        return f"{type(error).__name__} {error}"


# Quantities.


def drawn_quantity(dice: Random) -> str:
    sign = dice.choice(("", "", "", "-", "+"))
    number = dice.choice(
        (
            str(dice.randrange(10)),
            str(dice.randrange(100_000)),
            str(1024 * dice.randrange(50)),
            f"{dice.randrange(1_000)}.{dice.randrange(1_000_000_000_00)}",
            f".{dice.randrange(1_000)}",
            f"{dice.randrange(9)}.",
            str(2**63 - dice.randrange(3)),
            "0",
            "0.000",
            "1" * dice.randrange(1, 60),
        )
    )
    suffixes = ("", "", "m", "u", "n", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi")
    suffix = dice.choice(
        (*suffixes, "Ei", "K", "e", "e3", "E-2", "e99", "E+400", "ki", " ", "mi", "e-70")
    )
    return sign + number + suffix


def test_quantities_are_read_and_spelled_as_before(pytestconfig: pytest.Config) -> None:
    outcomes = {}
    for seed in range(20):
        dice, lines = Random(f"quantities {seed}"), []
        for _ in range(60):
            text = drawn_quantity(dice)
            lines += [
                f"{text} {read.__name__} {tried(lambda r=read, t=text: r(t))}"  # type: ignore[misc]
                for read in READERS
            ]
            resource = dice.choice(("cpu", "memory", "storage", "hugepages-2Mi", "pods", "gpu"))
            count = dice.choice((-1, 1)) * dice.choice(
                (0, 1, 999, 1_000, 1_024, 3 * 2**20, 2**63 - 1)
            )
            count += dice.randrange(3)
            lines.append(f"{resource} {tried(lambda: quantities.amount(resource, text))}")  # noqa: B023
            lines.append(f"{count} {resource} {quantities.quantity(resource, count)}")
            form = dice.choice(tuple(quantities.QuantityFormat))
            value = count * 10 ** dice.randrange(22)
            lines.append(f"{value} {form.value} {quantities.spelled(value, form)}")
        outcomes[f"quantities-{seed}"] = "\n".join(lines)
    require_digests(PINNED / "quantities.txt", outcomes, pytestconfig)


# Objects.


def disturbed(dice: Random, value: Any) -> Any:
    """Something in it is null, missing, of another type, or unknown."""
    if isinstance(value, dict) and value:
        key = dice.choice(list(value))
        match dice.randrange(9):
            case 0:
                return {**value, key: None}
            case 1:
                return {name: each for name, each in value.items() if name != key}
            case 2:
                return {**value, "unknownField": 3}
            case 3:
                return {**value, key: dice.choice((7, "text", [], {}, True, [None], 1.5))}
        return {**value, key: disturbed(dice, value[key])}
    if isinstance(value, list) and value:
        at = dice.randrange(len(value))
        return [*value[:at], disturbed(dice, value[at]), *value[at + 1 :]]
    return dice.choice((None, value, 3, "other"))


def documents(draw: DrawnObjects) -> list[tuple[Any, dict[str, Any]]]:
    pod = draw.in_group(draw.resized(draw.pod("p")))
    now = "2026-05-01T12:00:00.123456Z"
    lease = {"holderIdentity": "a", "leaseDurationSeconds": draw.below(9), "renewTime": now}
    event = {"eventTime": now, "reason": "Scheduled", "note": "n", "series": {"count": 2}}
    job = {
        "spec": {"parallelism": draw.below(4), "completions": 3, "suspend": draw.maybe(0.5)},
        "status": {"conditions": [{"type": draw.one(("Complete", "Other")), "status": "True"}]},
    }
    workload = {"podGroupTemplates": [{"name": "t", "priority": 3}], "controllerRef": {"kind": "J"}}
    return [
        (kinds.PODS, pod),
        (kinds.NODES, draw.node("n")),
        (kinds.NAMESPACES, draw.namespace("s")),
        (kinds.PRIORITY_CLASSES, {"metadata": {"name": "p"}, "value": draw.below(9)}),
        (kinds.POD_DISRUPTION_BUDGETS, draw.budget(1)),
        (kinds.POD_GROUPS, draw.pod_group(1)),
        (kinds.COSCHEDULING_GROUPS, draw.coscheduling_group(1)),
        (kinds.WORKLOADS, {"metadata": {"name": "w"}, "spec": workload}),
        (kinds.PERSISTENT_VOLUMES, draw.persistent_volume(1)),
        (kinds.PERSISTENT_VOLUME_CLAIMS, draw.claim(1)),
        (kinds.STORAGE_CLASSES, {"metadata": {"name": "s"}, "provisioner": "p"}),
        (kinds.LEASES, {"metadata": {"name": "l"}, "spec": lease}),
        (kinds.EVENTS, {"metadata": {"name": "e"}, **event}),
        (BATCH_JOBS, {"metadata": {"name": "j"}, **job}),
    ]


def test_objects_are_read_as_before(pytestconfig: pytest.Config) -> None:
    outcomes = {}
    for seed in range(20):
        draw, dice, lines = DrawnObjects(f"documents {seed}", 0.4), Random(f"documents {seed}"), []
        for kind, document in documents(draw):
            for times in (0, 1, 3):
                changed = document
                for _ in range(times):
                    changed = disturbed(dice, changed)
                text = msgspec.json.encode(changed)
                lines.append(f"{kind!r} {tried(lambda k=kind, t=text: plain(k.decode(t)))}")  # type: ignore[misc]
                listed = {"metadata": {"resourceVersion": "4", "continue": "c"}, "items": [changed]}
                body = msgspec.json.encode(listed)
                lines.append(tried(lambda k=kind, b=body: plain(k.decode_list(b))))  # type: ignore[misc]
                event = {
                    "type": dice.choice(("ADDED", "BOOKMARK", "ERROR", None)),
                    "object": changed,
                }
                order = dice.choice((1, -1))
                line = msgspec.json.encode(dict([*event.items()][::order]))
                lines.append(tried(lambda k=kind, t=line: plain(k.decode_line(t))))  # type: ignore[misc]
            path = kind.path(
                draw.one(("", "a b", "one")), draw.one(("", "x/y")), draw.one(("", "s"))
            )
            lines.append(f"{path} {kind.api_version} {kind.name}")
        for _ in range(20):
            code = dice.choice((400, 401, 403, 404, 409, 410, 413, 422, 429, 500, 503, 302, 599))
            status: dict[str, Any] = {"kind": dice.choice(("Status", "Pod")), "code": code}
            status |= {
                "reason": dice.choice(("AlreadyExists", "X")),
                "message": dice.choice(("", "m")),
            }
            if dice.random() < 0.3:
                reason = dice.choice(("DisruptionBudget", "Y"))
                status["details"] = {"causes": [{"reason": reason}]}
            read = status_in(msgspec.json.encode(disturbed(dice, status)))
            error = failure("GET /x", code, read)
            lines.append(f"{type(error).__name__} {error} {error.reason} {is_budget(read)}")
        outcomes[f"objects-{seed}"] = "\n".join(lines)
    assert {kind for kind, _ in documents(DrawnObjects(0))} == set(KINDS)
    require_digests(PINNED / "objects.txt", outcomes, pytestconfig)


# Kubeconfigs.


class DrawnConfigs:
    def __init__(self, seed: int, folder: Path) -> None:
        self.dice, self.folder, self.seed = Random(f"config {seed}"), folder, seed
        folder.mkdir()
        (folder / "ca.pem").write_text("-----BEGIN CERTIFICATE-----\nnone\n")
        (folder / "token").write_text(self.dice.choice(("secret-token\n", "", " spaces ")))
        (folder / "bad").write_bytes(b"\xff\xfe")

    def maybe(self, chance: float) -> bool:
        return self.dice.random() < chance

    def data(self) -> str:
        texts = ("cGVt", "cGVt", "", "cGVtLg==", "not base64!", base64.b64encode(b"\xff").decode())
        return self.dice.choice(texts)

    def cluster(self) -> dict[str, Any]:
        servers = ("https://h:6443", "https://h/", "http://localhost:8080", "ftp://h", "", "h:6443")
        drawn: dict[str, Any] = {"server": self.dice.choice((*servers[:3] * 5, *servers))}
        for field, chance, values in (
            ("certificate-authority", 0.3, ("ca.pem", "ca.pem", "absent.pem")),
            ("certificate-authority-data", 0.3, (self.data(),)),
            ("insecure-skip-tls-verify", 0.15, (True, False, False)),
            ("tls-server-name", 0.2, ("other",)),
            ("proxy-url", 0.2, ("http://proxy:1", "socks5://p:1", "proxy")),
            ("disable-compression", 0.2, (True,)),
            (
                "extensions",
                0.1,
                ([{"name": "client.authentication.k8s.io/exec", "extension": {"a": 1}}],),
            ),
        ):
            if self.maybe(chance):
                drawn[field] = self.dice.choice(values)
        return drawn

    def user(self) -> dict[str, Any]:
        drawn: dict[str, Any] = {}
        for field, chance, values in (
            ("token", 0.3, ("t0", "t1", "")),
            ("tokenFile", 0.2, ("token", "absent", "bad")),
            ("username", 0.2, ("me",)),
            ("password", 0.2, ("pass",)),
            ("client-certificate", 0.1, ("ca.pem", "absent")),
            ("client-certificate-data", 0.1, (self.data(),)),
            ("client-key", 0.1, ("ca.pem", "bad")),
            ("client-key-data", 0.1, (self.data(),)),
            ("as", 0.2, ("other", "two\nlines")),
            ("as-uid", 0.1, ("u1",)),
            ("as-groups", 0.15, (["g1", "g2"], ["g"])),
            ("as-user-extra", 0.15, ({"Scopes/x y": ["a", "b"]}, {"k": "v"})),
            ("auth-provider", 0.07, ({"name": "gcp"},)),
        ):
            if self.maybe(chance):
                drawn[field] = self.dice.choice(values)
        if self.maybe(0.35):
            drawn["exec"] = self.plugin()
        return drawn

    def plugin(self) -> dict[str, Any]:
        version = "client.authentication.k8s.io/"
        drawn: dict[str, Any] = {
            "command": self.dice.choice(("helper", "./bin/helper", "/usr/bin/true", "")),
            "apiVersion": version + self.dice.choice(("v1", "v1", "v1beta1", "v1alpha1")),
        }
        for field, chance, values in (
            ("args", 0.4, (["a", "b"], ["c"])),
            ("env", 0.3, ([{"name": "A", "value": "1"}],)),
            ("installHint", 0.3, ("install it",)),
            ("provideClusterInfo", 0.3, (True,)),
            ("interactiveMode", 0.7, ("Never", "IfAvailable", "Always", "Sometimes")),
        ):
            if self.maybe(chance):
                drawn[field] = self.dice.choice(values)
        return drawn

    def config(self) -> Any:
        names = ("one", "two")
        drawn: dict[str, Any] = {
            "clusters": [{"name": n, "cluster": self.cluster()} for n in names if self.maybe(0.95)],
            "users": [{"name": n, "user": self.user()} for n in names if self.maybe(0.95)],
            "contexts": [
                {
                    "name": name,
                    "context": {
                        "cluster": self.dice.choice((*names, name)),
                        "user": self.dice.choice((*names, *names, *names, "", "three")),
                        **({"namespace": "space"} if self.maybe(0.5) else {}),
                    },
                }
                for name in names
                if self.maybe(0.9)
            ],
        }
        if self.maybe(0.8):
            drawn["current-context"] = self.dice.choice((*names, "absent"))
        if self.maybe(0.05):
            drawn["users"].append({"name": "one"})
        if self.maybe(0.05):
            return self.dice.choice((None, [], "text", {**drawn, "clusters": {}}))
        return disturbed(self.dice, drawn) if self.maybe(0.08) else drawn

    def written(self, name: str) -> Path:
        text = msgspec.json.encode(self.config()).decode()
        if self.maybe(0.05):
            text = self.dice.choice(("a: [", "\t- x", "a: b: c"))
        file = self.folder / name
        file.write_text(text)
        return file

    def environment(self) -> dict[str, str]:
        drawn = {"HOME": str(self.folder / "home")}
        for name, chance, values in (
            ("HTTPS_PROXY", 0.3, ("proxy:3128", "http://proxy:1", "socks4://x", "http://")),
            ("http_proxy", 0.2, ("http://plain:1",)),
            ("NO_PROXY", 0.4, ("h", "*", "10.0.0.0/8, .example.com", "h:6443", "h:1", "*.h")),
            ("KUBERNETES_SERVICE_HOST", 0.4, ("10.0.0.1", "fd00::1")),
            ("KUBERNETES_SERVICE_PORT", 0.6, ("443",)),
        ):
            if self.maybe(chance):
                drawn[name] = self.dice.choice(values)
        return drawn


def shown(connection: Connection) -> str:
    """All of it, also what it does not show to people."""
    credentials = connection.credentials
    names = [name for name in connection.__struct_fields__ if name != "credentials"]
    fields = {name: getattr(connection, name) for name in names}
    kept = sorted((key, each) for key, each in vars(credentials).items() if "clock" not in key)
    parts = [f"{connection!r}", *(f"{key}={value!r}" for key, value in sorted(fields.items()))]
    return " ".join((*parts, type(credentials).__name__, repr(_revealed(kept))))


def _revealed(value: Any) -> Any:
    match value:
        case Secret():
            return f"secret {value.reveal()}"
        case list() | tuple():
            return [_revealed(each) for each in value]
        case msgspec.Struct():
            fields = value.__struct_fields__
            return {name: _revealed(getattr(value, name)) for name in fields}
        case str() | int() | float() | bytes() | None:
            return value
        case Path():
            return str(value)
        case dict():
            return {key: _revealed(each) for key, each in value.items()}
    return type(value).__name__


def test_kubeconfigs_become_connections_as_before(
    tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    outcomes = {}
    for seed in range(36):
        folder = tmp_path / str(seed)
        drawn, lines = DrawnConfigs(seed, folder), []
        files = [drawn.written("first"), drawn.written("second"), folder / "absent"]
        environment = drawn.environment()
        for config in (files, files[1:]):
            try:
                merged = Kubeconfig(config)
            except ArgosyError as error:
                lines.append(f"{error} {error.expected}")
                continue
            lines.append(f"{merged!r} {merged.contexts} {merged.current_context!r}")
            lines += [
                tried(lambda c=context: shown(merged.connection(c, environment)))  # type: ignore[misc]  # noqa: B023
                for context in (None, "one", "two", "other")
            ]
        account = folder / "account"
        account.mkdir()
        for name in ("token", "ca.crt", "namespace"):
            if drawn.maybe(0.8):
                (account / name).write_text(f"{name} of it\n")
        listed = {**environment, "KUBECONFIG": ":".join(map(str, files[1:]))}
        for given, where in ((None, environment), (None, listed), (files[0], {}), (files[2], {})):
            lines.append(
                tried(
                    lambda g=given, w=where: shown(  # type: ignore[misc]
                        load_connection(g, None, environment=w, account=account)  # noqa: B023
                    )
                )
            )
        lines.append(tried(lambda: shown(connection_in_cluster(environment, account))))  # noqa: B023
        lines += [
            tried(lambda s=server: proxy_for(s, environment))  # type: ignore[misc]  # noqa: B023
            for server in (
                "https://h:6443",
                "http://h",
                "https://10.2.3.4",
                "https://a.example.com",
            )
        ]
        text = "\n".join(lines).replace(str(folder), "FOLDER").replace(str(tmp_path), "FOLDER")
        outcomes[f"kubeconfig-{seed}"] = text
    require_digests(PINNED / "kubeconfigs.txt", outcomes, pytestconfig)


# Credentials.


async def logins(credentials: Credentials, dice: Random, clock: list[float], file: Path) -> str:
    lines = []
    for at in range(10):
        try:
            lines.append(repr(_revealed(await credentials.login())))
        except ArgosyError as error:
            lines.append(f"{type(error).__name__} {error} {error.expected} {error.hint}")
        match dice.randrange(5):
            case 0:
                credentials.refused()
                lines.append("refused")
            case 1:
                file.write_text(dice.choice((f"token-{at}", "", f" spaced-{at} \n")))
            case 2:
                file.unlink(missing_ok=True)
            case _:
                clock[0] += dice.choice((1.0, 30.0, 100.0))
    return "\n".join(lines)


def plugin_script(dice: Random, count: Path) -> str:
    """A plug-in that answers with another token each time, or nonsense."""
    version = dice.choice(("v1", "v1", "v1", "v1beta1"))
    kind = dice.choice(("ExecCredential", "ExecCredential", "ExecCredential", "Other"))
    expires = dice.choice(("", '"expirationTimestamp":"1970-01-01T00:03:00Z",'))
    status = dice.choice(
        (
            f'{{{expires}"token":"t-\'$n\'"}}',
            f'{{{expires}"token":"t-\'$n\'"}}',
            '{"token":"t","clientCertificateData":"C","clientKeyData":"K"}',
            '{"clientCertificateData":"C"}',
            "{}",
            "null",
        )
    )
    answer = (
        f'{{"kind":"{kind}","apiVersion":"client.authentication.k8s.io/{version}",'
        f'"status":{status}}}'
    )
    last = dice.choice((f"echo '{answer}'",) * 5 + ("echo nonsense", "echo wrong >&2; exit 3"))
    info = 'test -n "$KUBERNETES_EXEC_INFO" || exit 9'
    return f"#!/bin/sh\n{info}\nn=$(cat {count})\necho x$n > {count}\n{last}\n"


def test_credentials_are_issued_as_before(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    outcomes = {}
    for seed in range(12):
        folder, dice, clock = tmp_path / str(seed), Random(f"login {seed}"), [100.0]
        folder.mkdir()
        file = folder / "token"
        file.write_text("first")
        rotated = RotatedToken(
            file,
            fallback=dice.choice((None, Secret("fallback"))),
            clock=lambda: clock[0],  # noqa: B023
        )
        found = asyncio.run(logins(rotated, dice, clock, file))
        count, helper = folder / "count", folder / "helper"
        count.write_text("0")
        helper.write_text(plugin_script(dice, count))
        helper.chmod(helper.stat().st_mode | stat.S_IXUSR)
        config = {
            "clusters": [{"name": "c", "cluster": {"server": "https://h"}}],
            "users": [
                {
                    "name": "u",
                    "user": {
                        "exec": {
                            "command": dice.choice(("./helper",) * 5 + ("./absent",)),
                            "apiVersion": "client.authentication.k8s.io/v1",
                            "interactiveMode": dice.choice(("Never", "IfAvailable")),
                            "installHint": "get it",
                            "provideClusterInfo": seed % 2 == 0,
                        }
                    },
                }
            ],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "x",
        }
        (folder / "config").write_bytes(msgspec.json.encode(config))
        credentials = Kubeconfig([folder / "config"]).connection(None, {}).credentials
        assert isinstance(credentials, PluginCredentials)
        credentials._clock = lambda: clock[0]  # noqa: B023
        clock[0] = 100.0
        work: Coroutine[Any, Any, str] = logins(credentials, dice, clock, file)
        found += "\n" + asyncio.run(work)
        outcomes[f"login-{seed}"] = found.replace(str(folder), "FOLDER")
    require_digests(PINNED / "logins.txt", outcomes, pytestconfig)
