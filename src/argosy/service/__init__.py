"""The server: a live cluster behind an API.

Charter: the loop that drives a live world, REST, server-sent events, metrics, and the text of problems.
Owns sockets and the event loop; decides nothing about placement.
"""
