"""Eagle: hybrid scheduling that keeps short tasks away from long ones (Delgado et al., SoCC 2016).

Long jobs are placed centrally on their partition. Short jobs probe random machines; those that hold long
tasks refuse and say where others are (succinct state sharing), and the next round avoids these. What is
refused twice goes to the machines that long jobs may not use. A probe sticks to its machine until its
job has no task left (sticky batch probing). Machines run the shortest remaining job first, within a
slack.
"""

from argosy.engines.eagle.engine import Eagle, EagleSettings

__all__ = ["Eagle", "EagleSettings"]
