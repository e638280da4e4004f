"""Hawk: hybrid scheduling (Delgado et al., USENIX ATC 2015).

Long jobs are placed centrally in their partition; short jobs probe all machines; idle machines steal
short tasks that wait behind long ones (`[machines] steal`).
"""

from argosy.engines.hawk.engine import Hawk, HawkSettings

__all__ = ["Hawk", "HawkSettings"]
