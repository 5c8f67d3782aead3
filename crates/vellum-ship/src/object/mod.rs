//! The objects: their names, their bytes, and the chain that ties them together.
