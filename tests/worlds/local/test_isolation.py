"""Which limits a computer offers, read from files that a test has made."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from argosy.worlds.local import isolation
from argosy.worlds.local.isolation import CgroupParent, Isolation, detect_isolation, own_cgroup
from argosy.worlds.local.spec import SupervisorError


def group(path: Path, **files: str) -> Path:
    """A directory like a cgroup's."""
    path.mkdir(parents=True, exist_ok=True)
    for name, text in {"procs": "", "subtree_control": "", **files}.items():
        (path / f"cgroup.{name}").write_text(text)
    return path


class TestDetection:
    @pytest.mark.parametrize(
        ("files", "controllers"),
        [
            # The root has no type, and may have processes.
            ({"controllers": "cpu io memory pids", "procs": "1"}, ("memory", "cpu", "pids")),
            ({"controllers": "pids memory", "type": "domain"}, ("memory", "pids")),
            # With processes in it, only what its children have already counts.
            ({"controllers": "cpu memory", "type": "domain", "procs": "1"}, ()),
            (
                {
                    "controllers": "cpu memory",
                    "subtree_control": "cpu",
                    "type": "domain",
                    "procs": "1",
                },
                ("cpu",),
            ),
            ({}, ()),
        ],
    )
    def test_controllers_are_those_that_children_have_or_can_be_given(
        self,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        files: dict[str, str],
        controllers: tuple[str, ...],
    ) -> None:
        own = group(tmp_path / "own", **files)
        monkeypatch.setattr(isolation, "own_cgroup", lambda: own)
        found = detect_isolation()
        assert found == Isolation(platform="linux", parent=str(own), controllers=controllers)

    def test_without_a_cgroup_of_ones_own_there_is_no_parent(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "bare").mkdir()
        for own in (None, tmp_path / "bare"):
            monkeypatch.setattr(isolation, "own_cgroup", lambda own=own: own)
            assert detect_isolation() == Isolation(platform="linux")

    @pytest.mark.parametrize(
        ("root", "inside", "found"),
        [
            ("/", "/a/b", "mnt/a/b"),
            ("/a", "/a/b", "mnt/b"),
            ("/other", "/a/b", "mnt/a/b"),
            ("/", "/gone", None),
        ],
    )
    def test_the_cgroup_of_this_process_is_where_its_hierarchy_is_mounted(
        self,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        root: str,
        inside: str,
        found: str | None,
    ) -> None:
        for path in ("mnt/a/b", "mnt/b", "old/a/b"):
            (tmp_path / path).mkdir(parents=True)
        said = {
            "/proc/self/mountinfo": (
                f"1 2 0:1 / {tmp_path}/old rw - cgroup cgroup rw\n"
                f"2 2 0:2 {root} {tmp_path}/mnt rw shared:4 - cgroup2 cgroup2 rw\n"
            ),
            "/proc/self/cgroup": f"4:memory:/elsewhere\n0::{inside}\n",
        }
        monkeypatch.setattr(Path, "read_text", lambda self, *_: said[str(self)])
        assert own_cgroup() == (None if found is None else tmp_path / found)
        del_v2 = {**said, "/proc/self/cgroup": "4:memory:/elsewhere\n"}
        monkeypatch.setattr(Path, "read_text", lambda self, *_: del_v2[str(self)])
        assert own_cgroup() is None


class TestParents:
    def test_every_controller_is_asked_for_above_and_in_it(self, tmp_path: Path) -> None:
        above = group(tmp_path / "above")
        asked: list[tuple[str, str]] = []

        class Watched(type(tmp_path)):  # type: ignore[misc]
            def write_text(self, text: str, *options: str) -> int:
                asked.append((self.parent.name, text))
                return int(super().write_text(text, *options))

        parent = CgroupParent("below", Watched(above))
        wanted = ["+memory", "+cpu", "+pids"]
        assert asked == [(place, text) for place in ("above", "below") for text in wanted]
        assert parent.path == above / "below"
        assert parent.isolation.parent == str(above / "below")

    def test_it_is_made_once_and_removed_when_it_is_empty(self, tmp_path: Path) -> None:
        above = tmp_path / "above"
        above.mkdir()
        parent = CgroupParent("below", above)
        (parent.path / "cgroup.subtree_control").unlink()
        assert CgroupParent("below", above).path == parent.path
        assert not parent.remove(), "there is something in it"
        (parent.path / "cgroup.subtree_control").unlink()
        assert parent.remove()
        assert not parent.path.exists()

    def test_without_cgroups_there_is_no_parent(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(isolation, "own_cgroup", lambda: None)
        with pytest.raises(SupervisorError, match=r"no cgroups \(v2\) here; launch without"):
            CgroupParent("below")


@pytest.mark.parametrize("lacking", ["", "the cgroup", "its processes", "its control"])
def test_a_cgroup_is_ones_own_if_others_can_be_made_and_entered_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lacking: str
) -> None:
    own = group(tmp_path / "own", controllers="cpu")
    names = {own: "the cgroup", own / "cgroup.procs": "its processes"}
    names[own / "cgroup.subtree_control"] = "its control"
    asked: dict[str, int] = {}

    def access(path: Path, mode: int) -> bool:
        asked[names[path]] = mode
        return names[path] != lacking

    monkeypatch.setattr(isolation, "own_cgroup", lambda: own)
    monkeypatch.setattr(isolation.os, "access", access)
    found = detect_isolation()
    assert found.parent == ("" if lacking in ("the cgroup", "its processes") else str(own))
    assert found.controllers == (("cpu",) if not lacking else ())
    assert asked["the cgroup"] == os.W_OK | os.X_OK
    if not lacking:
        assert asked == {
            "the cgroup": os.W_OK | os.X_OK,
            "its processes": os.W_OK,
            "its control": os.W_OK,
        }
