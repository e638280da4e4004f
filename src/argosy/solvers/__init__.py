"""Solvers: min-cost flow, and placement under constraints.

Charter: apart from the cell, the only packages below the engines that import the native core. Each
solver takes and returns plain arrays and values, knows nothing about clusters, and has a checker
that shares no code with it.
"""
