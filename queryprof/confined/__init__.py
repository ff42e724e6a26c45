"""Execute SQL from strangers: what it may do, and processes with limits that end with their
parent.
"""
