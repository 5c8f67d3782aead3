//! Shipping where everything fails: processes that are killed, servers that answer wrongly or not
//! at all, stores that are away, rivals, copies.

mod bucket;
mod bugs;
mod http;
mod kills;
mod ledger;
mod overrun;
mod place;
mod refusals;
mod rivals;
#[path = "../stores/server.rs"]
mod server;
#[path = "../support/mod.rs"]
mod support;
// Registers have other names on other machines.
#[cfg(target_arch = "x86_64")]
mod stops;
#[cfg(target_arch = "x86_64")]
mod tracer;
mod writers;
mod wrong;

/// Where a second process begins that has a role.
#[test]
fn child_entry() {
    #[cfg(target_arch = "x86_64")]
    vellum_testing::child::run_role(&[tracer::ROLES, writers::ROLES]);
    #[cfg(not(target_arch = "x86_64"))]
    vellum_testing::child::run_role(&[writers::ROLES]);
}
