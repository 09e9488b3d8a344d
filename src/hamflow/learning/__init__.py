"""Training of descriptors, end to end through the min-projection. Only this package needs torch."""
