"""What the promise rests on: the boundary, budgets, the ledger, randomness, statements."""
