"""Adds vertices and arcs for new tasks, all jobs of a round at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from argosy.cell import View
from argosy.engines.families.flow.policy import NewGroup, Preferences, rank
from argosy.model.jobs import Job
from argosy.model.transactions import TaskArray
from argosy.solvers.flow.arrays import Numbers

if TYPE_CHECKING:
    from argosy.engines.families.flow.graph import Graph

Submission = tuple[Job, int, TaskArray]


def add_jobs(graph: Graph, submissions: Sequence[Submission], view: View, now: int) -> None:
    """Adds these tasks as pending; those already known to be pending are left alone."""
    if not submissions:
        return
    _add_entries(graph, submissions)
    groups: list[NewGroup] = []
    for job, number, tasks in submissions:
        rows = graph.roster.enter(tasks, now)
        if not len(rows):
            continue
        owner = graph.owner_number(job.owner)
        new, _ = graph.roster.named(rows)
        for group, mine in job.tasks_by_group(new):
            pool = graph.pools.get(group.request, group.requires, view, preempts=job.preempts)
            shape = view.shape(group.request, group.tags, job.precedence)
            where = rows if len(mine) == len(rows) else graph.roster.rows(mine)
            groups.append(NewGroup(job, number, group, mine, where, pool.number, shape, owner))
    if groups:
        _add_classes(graph, groups, now)


def _add_entries(graph: Graph, submissions: Sequence[Submission]) -> None:
    """Adds rows for all tasks of new jobs, and a vertex for each job."""
    for job, number, _ in submissions:
        if number in graph.jobs:
            if job is not graph.jobs.job(number):
                graph.change_job(job, number)
            continue
        head = graph.owner_vertices[graph.owner_number(job.owner)]
        graph.roster.add_job(number, job.tasks, head, rank(job, graph.settings))
        graph.jobs.add(number, job)
        if job.gang:
            graph.gangs.add(number)


def _add_classes(graph: Graph, groups: list[NewGroup], now: int) -> None:
    """Adds a class for each task that has preferences, and one for all other tasks of a group."""
    wishes = graph.policy.wishes(groups)
    table = np.array(
        [(g.number, g.pool, g.owner, g.shape, len(g.tasks)) for g in groups], np.int64
    ).T.copy()
    numbers, pools, owners, shapes, sizes = table
    rows = groups[0].rows if len(groups) == 1 else np.concatenate([g.rows for g in groups])
    class_of = graph.roster.add_classes(
        numbers,
        pools,
        owners,
        shapes,
        wishes.waiting,
        sizes,
        wishes.each,
        rows,
        wishes.pool,
        wishes.preemption,
        now,
    )
    if wishes.preferences is not None:
        _add_preferences(graph, wishes.preferences, class_of)


def _add_preferences(graph: Graph, wanted: Preferences, class_of: Numbers) -> None:
    classes = class_of[wanted.tasks]
    pools, is_above = graph.classes["pool"][classes], wanted.is_aggregator
    machines = np.where(is_above, 0, wanted.places)
    fits = is_above | (graph.pools.allowed[pools, machines] & graph.cluster.usable[machines])
    order = np.flatnonzero(fits)
    if not len(order):
        return
    order = order[np.argsort(classes[order], kind="stable")]
    classes, pools, is_above = classes[order], pools[order], is_above[order]
    places, costs = wanted.places[order], wanted.costs[order] + graph.settings.migration
    heads = graph.cluster.vertices[np.where(is_above, 0, places)]
    for number in np.unique(pools[is_above]).tolist():
        mine = is_above & (pools == number)
        heads[mine] = graph.pools.by_number[number].aggregators[places[mine]]
    graph.network.add_arcs(graph.classes["vertex"][classes], heads, 1, costs)
