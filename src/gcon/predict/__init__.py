"""Released model and own edges, a public graph or no edge at all -> labels."""
