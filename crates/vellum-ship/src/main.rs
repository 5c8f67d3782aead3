//! The command `vellum-ship`.

fn main() {}
