"""Bounded private values, budget and randomness -> something that may be published."""
