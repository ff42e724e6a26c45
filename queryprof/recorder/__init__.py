"""Start and stop the recording of a process: from its code, at its start, or by a command.

`attaching` and `guardian` run in the command. The other modules run in the program.
"""
