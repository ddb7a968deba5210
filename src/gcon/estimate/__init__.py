"""Estimators: everything here is free, because it reads public data and what was released, and never a private edge."""
