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
        self.jobs, self.waiting = {}, {}  # by job number: the job, and tasks that found no room
        self.asked, self.tokens = {}, 0  # by token: the job number and claims not yet answered
        self.gone = np.empty(0, np.int64)  # tasks that nobody wants any more

    def handle(self, event, view, now):
        match event:
            case engine.JobSubmitted(job, number, tasks) | engine.TasksLost(job, number, tasks):
                self.jobs[number], self.gone = job, np.setdiff1d(self.gone, tasks)
                return self.place(number, tasks, view, now)
            case engine.Committed(token, outcome):
                number, claims = self.asked.pop(token)
                return self.place(number, claims.tasks[~outcome.accepted], view, now)
            case engine.TimerFired(name) if int(name) in self.waiting:
                return self.place(int(name), self.waiting[int(name)], view, now)
            case engine.JobCancelled() | engine.JobChanged():
                self.gone = np.union1d(self.gone, engine.withdrawn(event))
                more = engine.added(event)
                return self.handle(more, view, now) if more else ()
            case engine.TaskFailed():
                return self.handle(engine.failed(event, view), view, now)
        return ()

    def place(self, number, tasks, view, now):
        job, draft, effects = self.jobs[number], engine.Draft(view), []
        tasks = np.setdiff1d(np.union1d(tasks, self.waiting.pop(number, tasks)), self.gone)
        for group, mine in job.tasks_by_group(tasks):
            shape = view.shape(group.request, group.tags, job.precedence)
            found, left = draft.place(
                mine, shape, engine.Rule.WORST, self.context.random, requires=group.requires
            )
            effects += [engine.Explain(left, found.explanation())] if len(left) else []
        if draft.count:
            claims, self.tokens = draft.claims(), self.tokens + 1
            self.asked[self.tokens] = number, claims
            effects += [engine.Commit(self.tokens, engine.Transaction(self.context.name, claims))]
        if len(left := draft.unplaced()):
            self.waiting[number] = left
            effects.append(engine.WakeMe(now + self.settings.retry, str(number)))
        return effects
