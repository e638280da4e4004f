"""The client of a live cluster's API.

Charter: finds servers and speaks their API. Decides nothing.
"""
