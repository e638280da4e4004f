"""Scheduling as min-cost flow. Shared by `firmament` and `quincy`; contains no engine.

Charter: tasks are supplies, machines lead to a sink, and a flow of least cost says which task runs
where. The graph keeps the network in step with the cluster, a policy sets the costs, and the
scheduler runs rounds.
"""
