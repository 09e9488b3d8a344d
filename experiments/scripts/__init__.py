"""Experiments that are a single script each."""
