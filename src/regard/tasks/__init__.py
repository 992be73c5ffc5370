"""A question asked of a model: what its data are, its loss, its answer, and how that is scored."""
