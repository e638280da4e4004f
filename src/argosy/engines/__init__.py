"""Engines: scheduling algorithms as pure functions from events to effects.

Charter: `api` is the contract and `registry` lists all engines. Each engine is a folder that imports no
other engine, and no clock, entropy, network, thread or logging library.
"""
