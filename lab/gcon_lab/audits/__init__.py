"""Audits: mechanisms run many times on neighbouring graphs, and what that proves about their epsilon."""
