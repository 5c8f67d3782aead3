//! From a short run to a recommendation that the library follows.
