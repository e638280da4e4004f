"""Scheduling as min-cost flow: what the engines that do so are made of.

Charter: tasks are supplies, machines lead to a sink, and a flow of least cost says who runs where. The
graph keeps the network in step with the cluster, a policy says what things cost, and the scheduler runs
rounds. No engine itself: `firmament` and `quincy` are.
"""
