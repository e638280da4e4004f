"""Measures of a run: summaries, statistics, timelines and placement quality.

Charter: numbers computed from a finished run. No files, no sentences.
"""
