"""Attacks that guess whether two nodes are connected."""
