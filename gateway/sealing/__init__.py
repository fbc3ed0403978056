"""Claims in, an opaque `requestState` out, and back. Only the gateway can read one. It knows no HTTP and no clock.

`claims` is what a ticket says, `box` seals and opens it, `keyring` has the keys.
`envelope` seals what replicas write to each other.
"""
