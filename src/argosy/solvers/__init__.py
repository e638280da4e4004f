"""Flow and integer programs behind small facades.

Charter: the solvers' one home, beside the cell the only engine-side importers of the native core. Each
takes and gives plain arrays and values, knows nothing of clusters, and has a checker that shares no
code with it.
"""
