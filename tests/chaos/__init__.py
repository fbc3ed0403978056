"""Breaks a whole deployment on purpose, and compares what clients, gateways and servers wrote down. Not a unit test."""
