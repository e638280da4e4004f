"""Tables, terminal plots, comparisons and the sentences they end in.

Charter: turn the values of a run into rows and text, and nothing else. Nothing here executes a run,
reads a file, writes to a terminal or knows an engine by name; colour and encoding are the command
line's affair.
"""
