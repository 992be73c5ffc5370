"""Shared by several folders of tests: folders that are built once, a command that starts fast."""
