"""Audit cases, one file per mechanism: the mechanism as it is, on a bad pair of graphs, and broken on purpose.

What is broken here is broken in copies. No training code imports this package.
"""
