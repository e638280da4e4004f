"""Engines: scheduling algorithms as pure functions from events to effects.

Charter: `api` is the contract, `registry` one screen of names, and each engine a folder of its own
that imports neither another engine nor a clock, entropy, network, thread or logging library.
"""
