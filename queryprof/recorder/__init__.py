"""Recording of a running process, for as long as a command is connected to it.

`attaching` and `guardian` run in the command. The other modules run in the program.
"""
