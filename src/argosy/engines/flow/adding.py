"""New tasks become vertices and arcs, all jobs of a round at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from argosy.cell import View
from argosy.engines.flow.columns import Rows
from argosy.engines.flow.policy import NewGroup, Preferences
from argosy.engines.flow.pools import PLENTY
from argosy.engines.flow.tasks import GONE, PENDING, RUNNING
from argosy.model.jobs import Job
from argosy.model.transactions import TaskArray

if TYPE_CHECKING:
    from argosy.engines.flow.graph import Graph

Numbers = NDArray[np.int64]
Submission = tuple[Job, int, TaskArray]


def add_jobs(graph: Graph, submissions: Sequence[Submission], view: View, now: int) -> None:
    """These tasks are pending; those that were known to be already are left alone."""
    _add_entries(graph, submissions)
    groups: list[NewGroup] = []
    for job, number, tasks in submissions:
        rows = graph.tasks.rows(tasks)
        state = graph.tasks["state"][rows]
        if (state == RUNNING).any():
            graph.stop(rows[state == RUNNING], now)
        new = np.sort(tasks[state == GONE])
        if not len(new):
            continue
        for group, mine in job.tasks_by_group(new):
            pool = graph.pools.get(group.request, group.requires, view)
            pool.tasks += len(mine)
            pool.pending += len(mine)
            shape = view.shape(group.request, group.tags, job.precedence)
            mine_rows = graph.tasks.rows(mine)
            graph.tasks["state"][mine_rows] = PENDING
            graph.tasks["shape"][mine_rows] = shape
            groups.append(NewGroup(job, number, group, mine, mine_rows, pool.number))
        entry = graph.jobs[number]
        graph.count_pending(number, entry, len(new), now)
        entry.living += len(new)
    if groups:
        _add_classes(graph, groups)


def _add_entries(graph: Graph, submissions: Sequence[Submission]) -> None:
    """Rows for all tasks of new jobs, and a vertex for each job."""
    new: dict[int, Job] = {}
    for job, number, _ in submissions:
        if not graph.tasks.knows_job(number):
            graph.tasks.add_job(number, job.tasks)
        if number not in graph.jobs:
            new[number] = job
    if new:
        vertices = graph.network.add_vertices(np.zeros(len(new), np.int64))
        owners = [graph.owner_vertices[graph.owner_number(job.owner)] for job in new.values()]
        arcs = graph.network.add_arcs(vertices, np.array(owners, np.int32), PLENTY, 0)
        graph.add_entries(new, vertices, arcs)


def _add_classes(graph: Graph, groups: list[NewGroup]) -> None:
    """A class for each task that has preferences, one for all others of a group."""
    wishes = graph.policy.wishes(groups)
    sizes = np.array([len(group.tasks) for group in groups], np.int64)
    rows = np.concatenate([group.rows for group in groups])
    group_of = np.repeat(np.arange(len(groups)), sizes)
    first_of = np.cumsum(sizes) - sizes
    # The place, in `rows`, of the first task of each class.
    firsts = np.flatnonzero(wishes.each[group_of] | (np.arange(len(rows)) == first_of[group_of]))
    owner = group_of[firsts]
    each = wishes.each[owner]
    supplies = np.where(each, 1, sizes[owner])
    spans = np.where(each, 1, rows[first_of[owner] + sizes[owner] - 1] + 1 - rows[firsts])
    columns, network, start = graph.classes, graph.network, graph.settings.migration
    classes = columns.take(len(firsts))
    vertices = network.add_vertices(supplies)
    numbers = np.array([group.number for group in groups], np.int64)[owner]
    pools = np.array([group.pool for group in groups], np.int64)[owner]
    job_vertices = np.array([graph.jobs[group.number].vertex for group in groups], np.int32)
    pool_vertices = np.array([graph.pools.by_number[g.pool].vertex for g in groups], np.int32)
    pool_costs = wishes.pool[firsts] + start
    wait_costs = wishes.waiting[owner] + start
    columns["vertex"][classes] = vertices
    columns["job"][classes] = numbers
    columns["pool"][classes] = pools
    columns["owner"][classes] = np.array([graph.owner_number(g.job.owner) for g in groups])[owner]
    columns["pool_cost"][classes] = pool_costs
    columns["pool_arc"][classes] = network.add_arcs(
        vertices, pool_vertices[owner], supplies, pool_costs
    )
    columns["wait_cost"][classes] = wait_costs
    columns["preemption"][classes] = wishes.preemption
    columns["wait_arc"][classes] = network.add_arcs(
        vertices, job_vertices[owner], supplies, wait_costs
    )
    columns["first"][classes] = rows[firsts]
    columns["rows"][classes] = spans
    columns["pending"][classes] = supplies
    graph.demand(classes, supplies)
    class_of = classes[np.searchsorted(firsts, np.arange(len(rows)), side="right") - 1]
    graph.tasks["task_class"][rows] = class_of
    if wishes.preferences is not None:
        _add_preferences(graph, wishes.preferences, class_of)


def _add_preferences(graph: Graph, wanted: Preferences, class_of: Rows) -> None:
    classes = class_of[wanted.tasks]
    pools, is_rack = graph.classes["pool"][classes], wanted.is_rack
    machines = np.where(is_rack, 0, wanted.places)
    fits = is_rack | (graph.pools.allowed[pools, machines] & graph.cluster.usable[machines])
    order = np.flatnonzero(fits)
    if not len(order):
        return
    order = order[np.argsort(classes[order], kind="stable")]
    classes, pools, is_rack = classes[order], pools[order], is_rack[order]
    places, costs = wanted.places[order], wanted.costs[order] + graph.settings.migration
    heads = graph.cluster.vertices[np.where(is_rack, 0, places)]
    for number in np.unique(pools[is_rack]).tolist():
        racks = graph.pools.by_number[number].racks
        assert racks is not None
        mine = is_rack & (pools == number)
        heads[mine] = racks[places[mine]]
    arcs = graph.network.add_arcs(graph.classes["vertex"][classes], heads, 1, costs)
    places = np.where(is_rack, -1 - places, places)
    unique, starts = np.unique(classes, return_index=True)
    ends = [*starts[1:].tolist(), len(classes)]
    for task_class, begin, end in zip(unique.tolist(), starts.tolist(), ends, strict=True):
        part = slice(begin, end)
        graph.preferences[task_class] = arcs[part], places[part], costs[part]
