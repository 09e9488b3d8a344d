"""How the stages follow each other: frames, scales and windows, the search, videos."""
