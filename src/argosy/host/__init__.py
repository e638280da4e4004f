"""The host: runs engines against a cell; the same for simulated and real machines.

Charter: the fleet and its routing, checking effects, committing, starting and losing tasks,
failover, restarts, machines that join and leave, the table of jobs, the journal. Pure code over
`Cell` and the native `TaskRuntime`, driven by a world through the protocols in `protocols`. Knows
no engine by name, reads no clock and starts no threads or processes.
"""

from argosy._core import JournalReader, RuntimeEvent, TaskState

__all__ = ["JournalReader", "RuntimeEvent", "TaskState"]
