//! Suite `write`: every way to create a file and to fill it, by one thread or by many.
