"""Steps: the loop, the optimizer and its schedule, checkpoints that can be relied on."""
