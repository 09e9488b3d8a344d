"""Hostile files for every reader: the seeds, what is fuzzed, and the coverage-guided fuzzer."""
