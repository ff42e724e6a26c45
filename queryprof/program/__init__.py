"""The profiled program: its source files, its databases, and who locks them."""
