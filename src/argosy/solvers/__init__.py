"""Flow and integer programs behind small facades.

Charter: the solvers' one home, beside the cell the only engine-side importers of the native core. The
first of them, min-cost flow, comes with the engine that needs it.
"""
