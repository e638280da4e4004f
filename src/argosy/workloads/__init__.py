"""Workloads: job tables, traces and generators.

Charter: turn text or parameters into jobs, and write jobs as a trace that can be read back. Every error
has its place. Depends only on the model: no scenario, engine or clock; all randomness comes from the
stream it is given.
"""
