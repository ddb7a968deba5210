"""The way out: gates that pay the ledger, and the released model."""
