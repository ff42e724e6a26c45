"""The badge, which shows each request's queries in web pages during development, and the
middleware.
"""
