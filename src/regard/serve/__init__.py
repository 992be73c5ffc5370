"""The HTTP server: predictions, attention and counterfactuals of runs, for people and programs."""
