"""Shadow mode: what engines would have done with the pods of a cluster that another scheduler places.

Charter: reads the cluster and writes nothing to it. Each engine has a world of its own, in which its own
decisions hold; pods come and end as they really do. The cluster's scheduler and the engines are recorded
and judged by the same code.
"""
