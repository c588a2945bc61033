"""What the engines have in common whose agents are behind a network: `fedstay.flower` and
`fedstay.flare`.

On the server, `engine` does what the core's loop asks of any of them, with `patience`, and `showing` says what
goes to whom. `roll` knows who takes part, `door` and `reader` check what agents say, `layout` how models lie
in vectors, and `answers` keeps what came back in a round. `agent` is for the agents' side. None of it knows a
framework.
"""
