"""Show attention and results as text, plots and pages, without torch."""
