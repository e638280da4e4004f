"""Yaq-c: queues at machines under one central scheduler (Rasley et al., EuroSys 2016)."""

from argosy.engines.yaq_c.engine import YaqC, YaqCSettings

__all__ = ["YaqC", "YaqCSettings"]
