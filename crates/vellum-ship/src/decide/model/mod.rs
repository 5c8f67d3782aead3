//! Every order of events in small worlds, and random ones in larger worlds.
//!
//! The model drives the code that ships, not a copy of it. `VELLUM_SHIP_MODEL=STATES` raises the
//! number of states that one scenario may have.

mod action;
mod actor;
mod checks;
mod explore;
mod scenarios;
mod steps;
mod store;
mod traces;
mod upkeep;
mod world;
