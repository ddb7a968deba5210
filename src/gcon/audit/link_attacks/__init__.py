"""Attacks that guess who is linked with whom: each is a function of what an attacker may see (docs/attacks.md)."""
