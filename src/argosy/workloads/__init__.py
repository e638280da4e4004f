"""Workloads: job tables, traces and generators.

Charter: turn text or parameters into jobs, and jobs into a trace that gives them back. Every error
names its place. Knows the model alone: no scenario, no engine, no clock; all randomness comes from
the stream it is given.
"""
