"""Record: the measuring core in C and the recorder that empties it."""
