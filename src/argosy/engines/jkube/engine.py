from __future__ import annotations

from typing import ClassVar

from argosy.engines.families.lra import sight
from argosy.engines.families.lra.manager import Sight
from argosy.engines.families.lra.scheduler import LraScheduler
from argosy.model.budgets import Budget
from argosy.model.random import Random
from argosy.solvers.placement import PlacementAnswer, PlacementProblem, place


class JKube(LraScheduler):
    name: ClassVar[str] = "jkube"
    summary: ClassVar[str] = "Kubernetes' scoring, one container at a time; affinities only."

    @classmethod
    def sight(cls) -> Sight | None:
        return sight.kube

    def decide(self, problem: PlacementProblem, random: Random, budget: Budget) -> PlacementAnswer:
        return place(problem, "kube", random, self._lra.objective)


class JKubePlus(JKube):
    name: ClassVar[str] = "jkube++"
    summary: ClassVar[str] = "As jkube, with cardinality constraints."

    @classmethod
    def sight(cls) -> Sight | None:
        return sight.kube_plus


class KubeModern(JKube):
    name: ClassVar[str] = "kube-modern"
    summary: ClassVar[str] = "As jkube, with hard upper limits, like topology spread constraints."

    @classmethod
    def sight(cls) -> Sight | None:
        return sight.kube_modern
