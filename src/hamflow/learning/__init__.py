"""Learning of descriptors, end to end through the min-projection; only this needs torch."""
