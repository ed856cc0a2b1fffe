"""Tells the author of an adapter which clause of the ports' contract it breaks."""
