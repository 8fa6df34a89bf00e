"""Stands in for torchtitan: it trains nothing, and prints the lines of 0.2.2."""
