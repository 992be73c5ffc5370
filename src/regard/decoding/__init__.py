"""Log-probabilities into tokens: searches over the `Stepper` protocol, never over a model class."""
