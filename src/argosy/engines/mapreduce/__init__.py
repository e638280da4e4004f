"""MapReduce: a specialised scheduler on shared state (Omega, EuroSys 2013, section 6).

Jobs with phases are given their workers like any job's tasks, and then others from room that lies idle,
as a policy allows and as a model of past runs says that it helps. Runs beside any other scheduler.
"""

from argosy.engines.mapreduce.engine import MapReduce, MapReduceSettings

__all__ = ["MapReduce", "MapReduceSettings"]
