"""The commands of ``python -m experiments``, one module for each."""
