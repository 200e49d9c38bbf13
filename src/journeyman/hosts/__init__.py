"""Other programs' agents: what we know of each, and how to run one.

`pages` lists them. A page (`host.py` has the contract) says how its program is started and how what
it prints is read; `process.py` runs it.
"""
