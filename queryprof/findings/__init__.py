"""Rules that explain why a program's database work is slow, how to fix it, and what the fix
saves.
"""
