"""Reproduces the figures of published papers, and checks the papers' claims.

Charter: define the points of a figure, run them, and turn the measurements into charts and claims, as
values. A point's result depends only on the point and on Argosy's version, unless it measures real
time. `report` draws and `cli` prints; a claim that does not hold is reported, not adjusted.
"""
