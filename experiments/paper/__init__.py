"""The paper's experiments, next to the numbers that the paper prints."""
