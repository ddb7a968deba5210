"""How time and memory grow with the graph: our propagation beside what a user would pick instead, one process each."""
