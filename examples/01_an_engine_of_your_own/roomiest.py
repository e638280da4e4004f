"""An engine outside Argosy: every task goes to the machine with the most room left."""

import numpy as np

from argosy.cell import Draft, Rule
from argosy.engines.api import Capabilities, Settings
from argosy.model.effects import Commit, Explain, WakeMe
from argosy.model.events import Committed, JobSubmitted, TasksLost, TimerFired
from argosy.model.transactions import Transaction
from argosy.model.units import Micros


class RoomiestSettings(Settings):
    #: How long tasks wait that found no room.
    retry: Micros = Micros(1_000_000)


class Roomiest:
    name = "roomiest"
    summary = "The machine with the most room left, at once and without thinking."
    settings_type = RoomiestSettings
    capabilities = Capabilities(transactions=True)

    def __init__(self, settings, context):
        self.settings, self.context = settings, context
        self.waiting = {}  # job number -> (job, tasks without a machine)

    def handle(self, event, view, now):
        match event:
            case JobSubmitted(job, number, tasks) | TasksLost(job, number, tasks):
                return self.place(job, number, tasks, view, now)
            case Committed(transaction, outcome) if not outcome.all_accepted:
                refused = transaction.claims.tasks[~outcome.accepted]
                number = int(refused[0]) >> 32
                return self.place(self.waiting[number][0], number, refused, view, now)
            case TimerFired(name) if len(self.waiting[int(name)][1]):
                return self.place(self.waiting[int(name)][0], int(name), [], view, now)
        return ()

    def place(self, job, number, tasks, view, now):
        _, others = self.waiting.get(number, (job, []))
        draft, effects = Draft(view), [WakeMe(now + self.settings.retry, str(number))]
        for group, mine in job.tasks_by_group(np.union1d(tasks, others).astype(np.int64)):
            shape = view.shape(group.request, group.tags, job.precedence)
            found, left = draft.place(
                mine, shape, Rule.WORST, self.context.random, requires=group.requires
            )
            if len(left):
                effects.append(Explain(left, found.explanation()))
        self.waiting[number] = (job, draft.unplaced())
        if draft.count:
            effects.append(Commit(Transaction(self.context.name, draft.claims())))
        return effects
