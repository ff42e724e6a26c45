"""The badge in web pages, which shows each request's queries during development; and the
middleware.
"""
