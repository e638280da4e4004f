"""Argosy: one cluster scheduler with a fleet of engines."""

__version__ = "0.1.0"
