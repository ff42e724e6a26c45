"""Execute SQL from strangers: restrict its actions, and run it in processes that have limits and
end with their parent.
"""
