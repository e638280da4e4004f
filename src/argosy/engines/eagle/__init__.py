"""Eagle: hybrid scheduling that keeps short tasks away from long ones (Delgado et al., SoCC 2016).

Long jobs are placed centrally in their partition. Short jobs probe random machines; machines with long
tasks refuse and say which others have some (succinct state sharing), and the next round avoids these.
Probes refused twice go to the machines that long jobs may not use. A probe stays at its machine until
its job has no task left (sticky batch probing). Machines run the shortest remaining job first, within a
slack.
"""

from argosy.engines.eagle.engine import Eagle, EagleSettings

__all__ = ["Eagle", "EagleSettings"]
