"""The profiled program: its source files, its databases, and the processes that lock them."""
