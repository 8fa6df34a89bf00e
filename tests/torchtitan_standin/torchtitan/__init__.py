"""Stand-in for torchtitan that does not train and prints the lines of 0.2.2."""
