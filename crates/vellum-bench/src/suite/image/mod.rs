//! Suite `image`: random writes into a disk image, by how its space was allocated.
