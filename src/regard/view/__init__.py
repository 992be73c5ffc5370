"""Weights -> pictures, without torch: plain sequences of floats go in."""
