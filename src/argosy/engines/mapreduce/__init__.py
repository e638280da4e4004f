"""MapReduce: a specialised scheduler on shared state (Omega, EuroSys 2013, section 6).

Jobs with phases get their workers like any job's tasks, and then extra ones from idle resources, if a
policy allows it and a model of past runs predicts a gain. Works alongside any other scheduler.
"""

from argosy.engines.mapreduce.engine import MapReduce, MapReduceSettings

__all__ = ["MapReduce", "MapReduceSettings"]
