"""A server whose machines are the nodes of a Kubernetes cluster, and whose tasks are its pods."""
