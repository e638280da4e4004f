"""Charts and claims of the Medea paper, one module per group of figures.

The criteria of figures 7 to 11b were written down before the figure was first measured, those of 2 and
11c after a first look. Claims on the plain reading of heuristics were added later, with the criteria of
first fit.
"""
