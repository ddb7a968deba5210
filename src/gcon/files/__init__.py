"""Users' tables in and out, data sets, and synthetic graphs."""
