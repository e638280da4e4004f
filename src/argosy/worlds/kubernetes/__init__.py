"""Kubernetes' rules: what pods ask for, and which nodes may run them."""
