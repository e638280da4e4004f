"""A watch gives up at once only where waiting would not help, and only before it has read anything."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from argosy.kubernetes import failures as failed
from argosy.kubernetes.watching import ObjectWatch

HOPELESS = (
    failed.RequestForbidden,
    failed.RequestInvalid,
    failed.NotAuthenticated,
    failed.ObjectNotFound,
)
PASSING = (failed.ServerFailed, failed.RequestThrottled, failed.ResourceVersionGone)


@pytest.mark.parametrize("is_complete", [False, True])
@pytest.mark.parametrize("kind", [*HOPELESS, *PASSING])
def test_only_what_is_hopeless_from_the_beginning_ends_a_watch(
    kind: type[failed.KubernetesError], is_complete: bool
) -> None:
    watch: Any = SimpleNamespace(is_complete=is_complete)
    error = kind("LIST pods", "no")
    if kind in HOPELESS and not is_complete:
        with pytest.raises(kind) as caught:
            ObjectWatch._fail_early(watch, error)
        assert caught.value is error
    else:
        ObjectWatch._fail_early(watch, error)
