"""What the promise rests on: private values, budget, ledger, gates, receipt, statement, randomness."""
