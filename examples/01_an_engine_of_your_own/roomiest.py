"""An engine of your own: every task goes to the machine with the most room left."""

import numpy as np

from argosy import engine


class RoomiestSettings(engine.Settings):
    #: How long to wait before tasks that found no room are tried again.
    retry: engine.Micros = engine.Micros(1_000_000)


class Roomiest:
    name = "roomiest"
    summary = "The machine with the most room left, at once and without thinking."
    settings_type = RoomiestSettings
    capabilities = engine.Capabilities(transactions=True)

    def __init__(self, settings, context):
        self.settings, self.context = settings, context
        self.jobs = {}  # job number -> job
        self.waiting = {}  # job number -> tasks that found no room
        self.asked = {}  # token -> job number, claims that the cell has not answered
        self.token = 0

    def handle(self, event, view, now):
        match event:
            case engine.JobSubmitted(job, number, tasks) | engine.TasksLost(job, number, tasks):
                self.jobs[number] = job
                return self.place(number, tasks, view, now)
            case engine.Committed(token, outcome):
                number, claims = self.asked.pop(token)
                if not outcome.all_accepted:
                    return self.place(number, claims.tasks[~outcome.accepted], view, now)
            case engine.TimerFired(name) if int(name) in self.waiting:
                return self.place(int(name), self.waiting[int(name)], view, now)
        return ()

    def place(self, number, tasks, view, now):
        job, draft, effects = self.jobs[number], engine.Draft(view), []
        tasks = np.union1d(tasks, self.waiting.pop(number, tasks))
        for group, mine in job.tasks_by_group(tasks):
            shape = view.shape(group.request, group.tags, job.precedence)
            found, left = draft.place(
                mine, shape, engine.Rule.WORST, self.context.random, requires=group.requires
            )
            if len(left):
                effects.append(engine.Explain(left, found.explanation()))
        if draft.count:
            self.token += 1
            self.asked[self.token] = number, draft.claims()
            transaction = engine.Transaction(self.context.name, self.asked[self.token][1])
            effects.append(engine.Commit(self.token, transaction))
        if len(left := draft.unplaced()):
            self.waiting[number] = left
            effects.append(engine.WakeMe(now + self.settings.retry, str(number)))
        return effects
