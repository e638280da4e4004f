"""Engines of third parties that fail while a cluster is live."""

from argosy.engine import JobSubmitted
from argosy.engines.omega import Omega
from argosy.model.errors import SettingError


class FailsOnWord(Omega):
    """Raises as soon as it sees a job of this owner."""

    name = "fails-on-word"

    def handle(self, event, view, now):
        if isinstance(event, JobSubmitted) and event.job.owner == "trouble":
            raise RuntimeError("a bug of somebody else's")
        return super().handle(event, view, now)


class FailsWhenTold(Omega):
    """Raises at everything, once `fails` is set: also when the cluster starts again."""

    name = "fails-when-told"
    fails = False

    def handle(self, event, view, now):
        if FailsWhenTold.fails:
            raise RuntimeError("a bug of somebody else's")
        return super().handle(event, view, now)


class CannotStart(Omega):
    name = "cannot-start"

    def __init__(self, settings, context):
        raise SettingError("no machine has what this needs")


class BreaksAtTheStart(Omega):
    name = "breaks-at-the-start"

    def __init__(self, settings, context):
        raise RuntimeError("a bug of somebody else's")
