"""A plug-in of your own for cluster agents: machines with less carbon per kilowatt-hour score higher.

Machines state theirs as the attribute `carbon`, in grams. A task may demand a limit: `carbon = "200"`.
"""

import numpy as np

MOST = 1_000.0


class Greenest:
    name = "Greenest"

    def keeps(self, task, nodes):
        """As a filter: only machines within the limit, if the task has one."""
        if "carbon" not in task.demands:
            return np.ones(len(nodes), np.bool_)
        return self.grams(nodes) <= float(task.demands["carbon"])

    def score(self, task, nodes):
        """As a score: 100 for no carbon, 0 for a kilogram or more."""
        return np.int64(100 * (1 - self.grams(nodes) / MOST))

    def grams(self, nodes):
        known = (float(text) if text else MOST for text in nodes.labels("carbon"))
        return np.minimum(np.fromiter(known, np.float64, len(nodes)), MOST)
