"""Shared values: resources, machines, jobs, constraints, events, effects, explanations, errors.

Charter: frozen values and their checks; no policy, state, clock, input or output. All other packages may
import this one; it imports only the native core (random streams, budgets, reason codes).
"""
