"""The service, its tokens, and its client."""
