"""Matrix products by the fastest library of this machine."""
