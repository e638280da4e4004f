"""Charter: everything about talking to Kubernetes that is not the world; it decides no placement."""
