"""Engines from outside the package, as an installer would leave them."""

import sys
from collections.abc import Callable
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "01_an_engine_of_your_own"

#: Installs a text as the package and module `roomiest` with the entry points given.
Install = Callable[..., Path]


def install_into(directory: Path, text: str, package: str, entry_points: dict[str, str]) -> None:
    (directory / "roomiest.py").write_text(text)
    info = directory / f"{package}-0.1.0.dist-info"
    info.mkdir(exist_ok=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 0.1.0\n")
    declared = "".join(f"{name} = {value}\n" for name, value in entry_points.items())
    (info / "entry_points.txt").write_text(f"[argosy.engines]\n{declared}")


def forget_modules(*packages: str) -> None:
    for name in list(sys.modules):
        if name.partition(".")[0] in packages:
            del sys.modules[name]
