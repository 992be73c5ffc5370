"""Words -> calls. Each verb has a file of its own, which is imported only when it is called."""
