"""Settings chosen from free information, or paid for; every choice says which."""
