"""Kubernetes as a play, for campaigns: an API server in memory, in virtual time, and what goes wrong.

Charter: run the scheduler as `argosy kubernetes` does, with its client, watches, writer and database, on
an event loop whose time is virtual. Played are the network, the API server, the controllers that make
pods and the kubelets that run them.

    manifests    nodes and pods of a scenario
    api          the API server: graceful deletion, and a record of all that happened
    network      how requests and watches fare on their way
    workload     controllers and kubelets
    servers      schedulers that can be killed
    runs         a scenario, from its beginning to its end
"""
