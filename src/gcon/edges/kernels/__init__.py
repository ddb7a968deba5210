"""Sums over neighbours: one interface, four kernels that agree bit for bit."""
