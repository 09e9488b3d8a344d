"""Measurements of speed, memory and errors, compared with other libraries in the same run."""
