"""Encoded features and private edges -> private aggregates with their proven edge influence."""
