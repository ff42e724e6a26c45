"""Where SQL of strangers is executed: what it may do, and processes with limits that end with their
parent.
"""
