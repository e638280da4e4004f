"""A cluster as kubectl prints it: `kubectl get nodes,pods --all-namespaces -o json`, or `-o yaml`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from argosy.kubernetes.kinds import without_nulls
from argosy.kubernetes.meta import KubernetesObject
from argosy.kubernetes.objects import Node, PersistentVolume, PersistentVolumeClaim, Pod
from argosy.kubernetes.quantities import milli_units
from argosy.model.errors import ArgosyError, ScenarioError, excerpt
from argosy.scenarios.toml_files import read_utf8
from argosy.workloads.pod_lives import ClusterRecording, snapshot
from argosy.worlds.kubernetes.volumes import KnownVolumes

EXPECTED: Final = "what `kubectl get nodes,pods --all-namespaces -o json` prints"
_LIST: Final = "List"
_KINDS: Final[dict[str, type[KubernetesObject]]] = {
    "Node": Node,
    "Pod": Pod,
    "PersistentVolume": PersistentVolume,
    "PersistentVolumeClaim": PersistentVolumeClaim,
}

SomeObject = TypeVar("SomeObject", bound=KubernetesObject)


def read_cluster(path: Path, since: int = 0) -> ClusterRecording:
    """The cluster in the file; pods that came in its last `since` microseconds come then. Objects of
    other kinds are left out. Every mistake is a `ScenarioError` with the file."""
    objects = [
        found
        for place, value, kind in _objects(path)
        if (found := _object(path, place, value, kind))
    ]
    nodes = _of_type(objects, Node)
    if not nodes:
        pods = len(_of_type(objects, Pod))
        raise ScenarioError(
            f"no nodes among {len(objects):,} objects" if objects else "no nodes and no pods",
            file=str(path),
            expected=EXPECTED,
            hint=f"it has {pods:,} pods: ask for nodes as well" if pods else None,
        )
    names = [node.name for node in nodes]
    if len(set(names)) < len(names):
        again = next(name for at, name in enumerate(names) if name in names[:at])
        raise ScenarioError(f"node {excerpt(again)} again", file=str(path), expected="each once")
    volumes = KnownVolumes()
    volumes.volumes = {each.name: each for each in _of_type(objects, PersistentVolume)}
    volumes.claims = {each.key: each for each in _of_type(objects, PersistentVolumeClaim)}
    seen = snapshot(nodes, _of_type(objects, Pod), volumes)
    return msgspec.structs.replace(seen, start=max(0, seen.end - since))


def _of_type(objects: list[KubernetesObject], kind: type[SomeObject]) -> list[SomeObject]:
    return [each for each in objects if isinstance(each, kind)]


def _documents(path: Path) -> list[Any]:
    text = read_utf8(path, ScenarioError, EXPECTED)
    if path.suffix.lower() == ".json":
        try:
            return [msgspec.json.decode(text)]
        except (msgspec.DecodeError, RecursionError) as error:
            problem = str(error) or "nested too deeply"
            raise ScenarioError(f"not JSON: {problem}", file=str(path), expected=EXPECTED) from None
    from argosy.scenarios.yaml_files import parse_yaml

    return parse_yaml(text, str(path), ScenarioError, EXPECTED)[0]


def _objects(path: Path) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Each object with its place in the file and its kind; those of lists one by one."""
    documents = _documents(path)
    for at, document in enumerate(documents):
        place = "" if len(documents) == 1 else f"document {at + 1}"
        if document is not None:
            yield from _inside(path, place, document, "")


def _inside(
    path: Path, place: str, value: Any, implied: str
) -> Iterator[tuple[str, dict[str, Any], str]]:
    kind = (value.get("kind") or implied) if isinstance(value, dict) else None
    if not isinstance(kind, str) or not kind:
        raise ScenarioError(
            "an object without a kind" if isinstance(value, dict) else "not an object",
            file=str(path),
            field=place or None,
            expected=EXPECTED,
        )
    if not kind.endswith(_LIST):
        yield place, value, kind
        return
    items = value.get("items")
    if not isinstance(items, list):
        raise ScenarioError(
            f"a {kind} without items", file=str(path), field=place or None, expected=EXPECTED
        )
    for at, item in enumerate(items):
        inner = f"{place}: items[{at}]" if place else f"items[{at}]"
        yield from _inside(path, inner, item, kind.removesuffix(_LIST))


def _object(path: Path, place: str, value: dict[str, Any], kind: str) -> KubernetesObject | None:
    type_ = _KINDS.get(kind)
    if type_ is None:
        return None
    try:
        found: KubernetesObject = msgspec.convert(without_nulls(value), type_)
        if not found.name:
            raise ScenarioError("no metadata.name")
        _check_quantities(found)
        return found
    except (msgspec.ValidationError, ArgosyError, ValueError) as error:
        problem = error.problem if isinstance(error, ArgosyError) else str(error)
        raise ScenarioError(
            f"{kind} that cannot be read: {problem}",
            file=str(path),
            field=place or None,
            expected=EXPECTED,
        ) from None


def _check_quantities(found: KubernetesObject) -> None:
    """An amount that is no quantity is an error here rather than where it is added up."""
    if isinstance(found, Node):
        tables = [found.status.allocatable]
    elif isinstance(found, Pod):
        containers = (*found.spec.containers, *found.spec.init_containers)
        tables = [found.spec.overhead, *(each.resources.requests for each in containers)]
        if found.spec.resources is not None:
            tables.append(found.spec.resources.requests)
    else:
        return
    for table in tables:
        for text in table.values():
            milli_units(text)
