"""The service: a released model over HTTP. People ask about themselves, from what they send or from their own edges alone."""
