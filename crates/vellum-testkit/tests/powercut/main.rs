//! The harness on workloads whose faults are known: it finds these and no others.
//!
//! - `examples`: the stores of the examples, on which it finds nothing.
//! - `promises`: the right workload, and each wrong one.
//! - `world`: what the commands under test see, and what remains of a run.
//!
//! What this machine cannot do is skipped, with the reason printed.

mod examples;
mod harness;
mod promises;
mod sectors;
mod world;
