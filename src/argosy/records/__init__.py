"""Saved runs: their directories, and what can be read from them.

Charter: write a run's files whole or not at all, and answer questions (why, story, audit) from them.
Knows no engine by name.
"""
