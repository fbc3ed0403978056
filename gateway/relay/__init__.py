"""Drives exchanges: feeds events to the machine and performs its commands. The only room that sees both sides.

In a call it knows no HTTP: the client is a `listener.Listener`, the server an `upstreams` session.

    relay         one upstream, served: discovery, lists, calls. Start here
    driver        one exchange at work; `legacy_call` is its call, `tickets` makes its tickets
    ladder        how a retry finds an exchange that this process does not have
    courier       rounds whose exchange is at another replica: `errands` out, `guests` in, `letters` between
    subscriptions clients that listen for changes
    passthrough   legacy clients and modern upstreams: handed on, or bridged message by message
    probe         what a server is: behind `holdfast probe`
"""
