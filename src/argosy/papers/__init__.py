"""The published systems' figures as experiments, checked against what their papers claim.

Charter: say which points a figure is made of, run them, and turn what they measured into charts and
claims, as values. A point's result depends on the point and on Argosy's version alone, whichever
process it runs in. Drawing is the report's affair, printing the command line's; a claim that does not
hold is reported, not repaired.
"""
