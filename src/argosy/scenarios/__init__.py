"""Scenario files: reading and checking them, and variants of a scenario.

Charter: turn a TOML file into one `Scenario`, or into one clear error with file, line and field. Runs
nothing.
"""
