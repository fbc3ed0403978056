"""Where replicas find each other's exchanges. It knows ids, times and bytes, and not what they mean.

`protocol` says what a store must do, `memory` and `redis` do it (one set of tests
for both), `opening` makes one from its address.
"""
