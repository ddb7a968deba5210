"""Mechanisms and plans that only competitors and experiments use."""
