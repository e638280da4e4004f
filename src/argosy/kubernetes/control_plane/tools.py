"""Where the programs are."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import msgspec

from argosy.kubernetes.control_plane.programs import KubeProgram
from argosy.model.errors import ArgosyError

#: Of the convention that envtest and others follow.
ASSETS: Final = "KUBEBUILDER_ASSETS"
#: How kwok brings nodes and pods to life.
STAGES: Final = "kwok-stages.yaml"
#: Absent from an installation without the repository.
_BUILD: Final = Path(__file__).parents[4] / "tools" / "kube" / "build"


class KubeToolsMissing(ArgosyError):
    """The programs of a control plane are not on this computer."""

    code = "kube-tools-missing"


class KubeTools(msgspec.Struct, frozen=True):
    """A folder with programs. Not all need be there: who starts only some needs only those."""

    directory: Path

    def path(self, program: KubeProgram) -> Path:
        return self.directory / program

    @property
    def stages(self) -> Path:
        return self.directory / STAGES

    @property
    def kubectl(self) -> Path:
        return self.directory / "kubectl"

    def require(self, programs: Iterable[KubeProgram]) -> None:
        asked = list(programs)
        missing = [str(each) for each in asked if not _is_program(self.path(each))]
        if KubeProgram.KWOK in asked and not self.stages.is_file():
            missing.append(STAGES)
        if missing:
            raise KubeToolsMissing(
                f"no {', '.join(missing)} in {self.directory}",
                hint=_hint(),
            )


def find_tools(
    programs: Iterable[KubeProgram] = tuple(KubeProgram), environ: Mapping[str, str] = os.environ
) -> KubeTools:
    """The folder that KUBEBUILDER_ASSETS names, or the one that `make kube-tools` fills; it has these
    programs."""
    assets = environ.get(ASSETS, "")
    if assets:
        tools = KubeTools(Path(assets).absolute())
    elif _BUILD.is_file():
        tools = KubeTools(_built(environ))
    else:
        raise KubeToolsMissing(
            "the Kubernetes tools are not part of this installation", hint=_hint()
        )
    tools.require(programs)
    return tools


def _is_program(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)


def _built(environ: Mapping[str, str]) -> Path:
    """The builder alone knows what determines its result."""
    told = subprocess.run(
        [sys.executable, "-I", "-S", str(_BUILD), "--where"],
        env=dict(environ),
        capture_output=True,
        text=True,
        check=True,
    )
    return Path(told.stdout.strip())


def _hint() -> str:
    if _BUILD.is_file():
        return f"run `make kube-tools`, or set {ASSETS} to a folder that has them"
    return f"run `make kube-tools` in Argosy's repository and set {ASSETS} to the folder it prints"
