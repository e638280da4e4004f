"""What a cluster agent does, as pure functions: its pipelines and their plug-ins.

    sampling   strategy, filter, score (Algorithm 1 of the Vela paper)
    commit     reserve, lock, check conflicts, commit (Algorithm 2)

`argosy.host` runs the pipelines for every cluster of a simulated cell, `argosy.service` for a live one.
A plug-in is a class with a name and one method; `argosy.agents.api` has the interfaces,
`argosy.agents.registry` finds plug-ins by name.

Charter: what agents decide. Owns no state of a cluster, and knows no time but what it is told.
"""
