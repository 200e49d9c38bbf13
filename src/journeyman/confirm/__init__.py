"""Confirmations: risky actions are held until a person decides. Pure rules here (`policy`,
`whitelist`, `digest`), operations on the ledger (`submitting`, `deciding`, `redeeming`), and around
them the service, its HTTP server, the page, the notices and the client.
"""
