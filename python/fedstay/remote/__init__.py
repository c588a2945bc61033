"""What the engines have in common whose agents are behind a network: `fedstay.flower` and
`fedstay.flare`.

`door` checks what agents say, `roll` knows who takes part, `answers` keeps what came back in a round, and
`engine` does what the core's loop asks of any of them. None of it knows a framework.
"""
