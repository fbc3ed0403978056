"""Pure translation legacy to modern and back, and the exchange state machine. No IO, no clock, no log."""
