"""Shared settings: property tests are deterministic and never judged by the clock."""

from hypothesis import settings

settings.register_profile("argosy", derandomize=True, deadline=None)
settings.load_profile("argosy")
