"""Pages for the people in the graph: what the model promises, a form to ask it, and what it is. Each needs only itself."""
