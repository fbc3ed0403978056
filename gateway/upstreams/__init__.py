"""The legacy server's side of the house: transports, sessions, the pool. It knows nothing about clients."""
