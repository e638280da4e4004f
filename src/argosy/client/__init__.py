"""The client of a live cluster's API."""
