"""Experiments: scenarios executed, one or many at once.

Charter: turn a scenario into a kept run, on one process or several.
"""
