"""Scenarios, experiments, run directories and statistics.

Charter: turn a scenario file into a run of a world, and a run into a directory that can be read
again. Knows no engine by name and draws nothing.
"""
