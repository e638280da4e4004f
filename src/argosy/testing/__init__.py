"""Builders, checkers, and the conformance suite every engine passes.

Charter: shared by tests, in this repository and in those of third-party engines. Nothing outside tests
imports this package.
"""
