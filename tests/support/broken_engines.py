"""Engines that each make one mistake, for a campaign to find."""

import os

from argosy.engine import JobSubmitted, TasksLost
from argosy.engines.omega import Omega
from argosy.model.errors import SettingError


class Faulty(Omega):
    name = "faulty"

    def handle(self, event, view, now):
        if isinstance(event, JobSubmitted) and event.job.gang and event.job.tasks > 2:
            return {}["a gang"]
        return super().handle(event, view, now)


class Choosy(Omega):
    """Not wrong: it says that it cannot work with its settings."""

    name = "choosy"

    def __init__(self, settings, context):
        raise SettingError("no machine has what this needs")


class Forgetful(Omega):
    name = "forgetful"

    def handle(self, event, view, now):
        return () if isinstance(event, TasksLost) else super().handle(event, view, now)


class Spinning(Omega):
    name = "spinning"

    def handle(self, event, view, now):
        while isinstance(event, JobSubmitted):
            pass
        return super().handle(event, view, now)


class Deadly(Omega):
    name = "deadly"

    def handle(self, event, view, now):
        if isinstance(event, JobSubmitted):
            os._exit(3)
        return super().handle(event, view, now)


class Hashing(Omega):
    """Its decisions depend on the order of a hash table."""

    name = "hashing"

    def handle(self, event, view, now):
        if isinstance(event, JobSubmitted) and hash(event.job.id) % 2:
            self._context.random.bits()
        return super().handle(event, view, now)
