"""What the Medea paper's figures show and say, beside what was measured: a module for each kind.

The rules of figures 7 to 11b were written down before the first measurement of their figure, those of 2
and 11c after a first look. Claims on the plain reading of heuristics came later, with first fit's rules.
"""
