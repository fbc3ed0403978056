"""Drives exchanges: feeds events to the machine and performs its commands. The only room that sees both sides."""
