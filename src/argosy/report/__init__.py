"""Tables, terminal plots, comparisons and verdicts.

Charter: turn the values of a run into rows and text. Nothing here runs a scenario, reads a file,
writes to a terminal or knows an engine by name; the command line handles colour and encoding.
"""
