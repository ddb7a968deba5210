"""Check a release folder against its own promise, from its numbers alone: no graph, no code that made the noise."""
