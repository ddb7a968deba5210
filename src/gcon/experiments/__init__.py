"""Measurements that the documentation quotes, one command each."""
