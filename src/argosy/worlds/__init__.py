"""Worlds hand events to engines and carry out their effects: simulated (`sim`), or on this computer
(`local`).

Charter: a world owns time, randomness, machines and messages. Worlds never import each other and know no
engine by name.
"""
