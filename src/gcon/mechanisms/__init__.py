"""One file per mechanism: what it computes from edges, its proven sensitivity, its plan and its noise."""
