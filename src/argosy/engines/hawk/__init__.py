"""Hawk: hybrid scheduling (Delgado et al., USENIX ATC 2015).

Long jobs are placed centrally on their partition, short jobs probe all machines; machines that run dry
steal short tasks that wait behind long ones (`[machines] steal`).
"""

from argosy.engines.hawk.engine import Hawk, HawkSettings

__all__ = ["Hawk", "HawkSettings"]
