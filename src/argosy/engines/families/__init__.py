"""Families of engines: `flow` (Firmament, Quincy) and `lra` (Medea and its baselines)."""
