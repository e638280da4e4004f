"""Worlds hand events to engines and carry out their effects. Today there is one, the simulator.

Charter: a world owns time, randomness, machines and messages. Worlds never import each other and know no
engine by name.
"""
