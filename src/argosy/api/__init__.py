"""What a server and its clients exchange: values, paths and limits.

Charter: the documents of the REST interface as typed values, shared by `service` and `client`. No I/O.
"""
