"""What tests need to know of the Kubernetes tools."""

from __future__ import annotations

from typing import Final

import pytest

from argosy.kubernetes.control_plane import KubeTools, KubeToolsMissing, find_tools

#: How the reason begins for which tests are skipped where the tools are missing.
MISSING: Final = "Kubernetes tools: "


def skip_without_kube_tools() -> KubeTools:
    try:
        return find_tools()
    except KubeToolsMissing as missing:
        pytest.skip(f"{MISSING}{missing}")
