//! What is to be done next, without input, output, clock or threads.
