"""Other formats into ours, and back."""
