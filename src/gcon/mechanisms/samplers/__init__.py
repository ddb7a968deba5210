"""Exact noise from random bytes."""
