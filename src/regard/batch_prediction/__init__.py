"""Predictions for inputs of any size: lines of a stream, and folders of files in parts."""
