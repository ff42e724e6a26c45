"""One module for each library to which queryprof attaches."""
