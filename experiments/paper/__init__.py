"""The paper's experiments, and its own figures beside what is measured here."""
