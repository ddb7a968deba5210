"""Noise plan, randomness and aggregates -> the perturbed objective."""
