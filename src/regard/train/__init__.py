"""Steps: the loop, the optimiser and its schedule, checkpoints that can be relied on."""
