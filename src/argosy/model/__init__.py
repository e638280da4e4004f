"""Values everyone shares: resources, machines, jobs, constraints, events, effects, explanations, errors.

Charter: frozen values and their checks, no policy, no state, no clock, no input or output. Everything
above imports this package; it imports nothing of Argosy but the random streams and the
budgets of the native core.
"""
