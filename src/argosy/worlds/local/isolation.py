"""Which limits this computer can enforce on tries, and how.

With cgroups (v2), limits hold for all processes of a try together, and a try can be killed at
once. Without, each process has limits of its own, and processor time and the number of processes
are not limited at all.
"""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from typing import Final

import msgspec

from argosy.worlds.local.spec import SupervisorError

#: What each controller limits, in the order of telling.
CONTROLLERS: Final = {"memory": "memory", "cpu": "CPU", "pids": "the number of processes"}


class Isolation(msgspec.Struct, frozen=True, kw_only=True):
    #: "linux", or a platform on which no tasks can be run.
    platform: str
    #: A cgroup below which this process may make others; empty if there is none.
    parent: str = ""
    #: Those of `CONTROLLERS` that cgroups below `parent` have or can be given.
    controllers: tuple[str, ...] = ()

    def sentence(self) -> str:
        if self.platform != "linux":
            return f"Tasks cannot be run on {self.platform}; simulations can."
        limited = [what for name, what in CONTROLLERS.items() if name in self.controllers]
        others = [what for name, what in CONTROLLERS.items() if name not in self.controllers]
        told = []
        if limited:
            told.append(f"cgroups limit {_listed(limited)} of each task")
        if "memory" not in self.controllers:
            told.append("memory is limited per process (RLIMIT_DATA)")
            others.remove("memory")
        if others:
            told.append(f"{_listed(others)} {'is' if len(others) == 1 else 'are'} not limited")
        how = "by cgroup" if self.parent else "one by one"
        told.append(f"processes left behind are killed {how}")
        text = "; ".join(told) + "."
        return text[0].upper() + text[1:]


def detect_isolation() -> Isolation:
    """What can be done here, found out by reading only."""
    if sys.platform != "linux":
        return Isolation(platform=sys.platform)
    own = own_cgroup()
    if own is None or not _is_ours(own):
        return Isolation(platform="linux")
    enabled = _words(own / "cgroup.subtree_control")
    if _may_enable(own):
        enabled |= _words(own / "cgroup.controllers")
    controllers = tuple(name for name in CONTROLLERS if name in enabled)
    return Isolation(platform="linux", parent=str(own), controllers=controllers)


class CgroupParent:
    """A cgroup to put those of tries in, with every controller that can be had."""

    def __init__(self, name: str, base: Path | None = None) -> None:
        """Makes it below `base`, by default the cgroup of this process."""
        above = base or own_cgroup()
        if above is None:
            raise SupervisorError("there are no cgroups (v2) here", hint="launch without a cgroup")
        self.path = above / name
        try:
            self.path.mkdir(exist_ok=True)
        except OSError as error:
            raise SupervisorError(
                f"{error.strerror}", file=str(self.path), expected="a cgroup that can be made"
            ) from error
        for place in (above, self.path):
            for controller in CONTROLLERS:
                # Busy if processes live in it, not found if it has no such controller.
                with contextlib.suppress(OSError):
                    (place / "cgroup.subtree_control").write_text(f"+{controller}", "ascii")
        enabled = _words(self.path / "cgroup.subtree_control")
        self.isolation = Isolation(
            platform="linux",
            parent=str(self.path),
            controllers=tuple(name for name in CONTROLLERS if name in enabled),
        )

    def remove(self) -> bool:
        """Whether it could be removed: it cannot while tries are in it."""
        try:
            self.path.rmdir()
        except OSError:
            return False
        return True


def own_cgroup() -> Path | None:
    """The cgroup (v2) that this process is in, where that hierarchy is mounted."""
    try:
        mounts = Path("/proc/self/mountinfo").read_text("utf-8", "surrogateescape").splitlines()
        groups = Path("/proc/self/cgroup").read_text("utf-8", "surrogateescape").splitlines()
    except OSError:
        return None
    inside = next((line[3:] for line in groups if line.startswith("0::")), None)
    for line in mounts:
        # "ID PARENT DEVICE ROOT MOUNT-POINT OPTIONS [TAGS] - TYPE SOURCE OPTIONS"
        before, _, after = line.partition(" - ")
        if inside is not None and after.startswith("cgroup2 "):
            root, mount_point = before.split(" ")[3:5]
            if root != "/" and Path(inside).is_relative_to(root):
                inside = "/" + str(Path(inside).relative_to(root))
            path = Path(mount_point + inside)
            return path if path.is_dir() else None
    return None


def _is_ours(path: Path) -> bool:
    """Whether this user may make cgroups in it and move processes there."""
    return os.access(path, os.W_OK | os.X_OK) and os.access(path / "cgroup.procs", os.W_OK)


def _may_enable(path: Path) -> bool:
    """Only the root may have both processes and controllers for its children."""
    control = path / "cgroup.subtree_control"
    # The root alone has no type.
    is_root = not (path / "cgroup.type").exists()
    return os.access(control, os.W_OK) and (is_root or not _words(path / "cgroup.procs"))


def _words(path: Path) -> set[str]:
    try:
        return set(path.read_text("ascii").split())
    except OSError:
        return set()


def _listed(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
