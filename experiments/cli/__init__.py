"""The commands of the laboratory, one module for each."""
