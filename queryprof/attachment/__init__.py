"""Recording of a process that runs already, for as long as a command is connected to it.

`attaching` and `guardian` are the command's side; the others run in the program.
"""
