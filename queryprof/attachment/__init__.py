"""Recording of a running process, for as long as a command is connected to it.

`attaching` and `guardian` are the command's side. The other modules run in the program.
"""
