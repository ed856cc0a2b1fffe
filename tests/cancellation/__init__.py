"""Cancelling a call at each of its suspensions, once and twice, by both kinds of cancel. Shared by all backends."""
