"""Builders, checkers, and the conformance suite every engine passes.

Charter: what tests share, here and in the repositories of people who write engines of their own.
Nothing outside tests imports this package.
"""
