"""Exchanges parked while a client is away: where they are kept, who may resume them, when they expire."""
