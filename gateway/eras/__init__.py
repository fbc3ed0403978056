"""Translation between the eras, and the state machine of an exchange. Pure: no IO, no clock, no log.

Start in `states` (the picture) and `exchange` (the machine); `vocabulary` has the
events that go in and the commands that come out. Around it: `asks` and `answers`
(a server's question, a client's answer), `policy` (which questions reach the
client), `requests` and `results` (the call itself), `lists` and `shapes` (what
modern clients can read), `discovery` (how a server introduces itself).
"""
