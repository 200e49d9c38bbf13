"""The HTTP server over the confirmations' service: what agents call, what people call, and the
page. It checks who asks and from where, and leaves every decision to the service.
"""
