"""Experiments: tables and figures, each by one command."""
