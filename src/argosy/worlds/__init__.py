"""Worlds carry out what engines ask for: in simulation, on this computer, on Kubernetes.

Charter: a world owns time, randomness, machines and messages, and hands engines events. Worlds never
import each other and know no engine by name.
"""
