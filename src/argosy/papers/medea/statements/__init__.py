"""What the Medea paper's figures show and say, beside what was measured: a module for each kind.

Rules of claims were written down before the first measurement of their figure unless a claim's note says
otherwise.
"""
