"""Convex losses with proven derivative bounds."""
