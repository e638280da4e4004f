"""Experiments: runs scenarios, one or many at once.

Charter: turn a scenario into a saved run, in one process or several.
"""
