"""Sweeps over settings that share what they can."""
