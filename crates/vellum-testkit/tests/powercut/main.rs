//! The harness on workloads whose faults are known: it finds these and no others.
//!
//! - `examples`: the stores of the examples, on which it finds nothing.
//! - `promises`: the right workload, and each wrong one.
//! - `world`: the surroundings of the commands under test, and the remains of a run.
//!
//! Tests that this machine cannot run are skipped, with the reason printed.

mod examples;
mod harness;
mod promises;
mod sectors;
mod world;
