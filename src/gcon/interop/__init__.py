"""Other libraries' graphs -> public nodes and private edges."""
