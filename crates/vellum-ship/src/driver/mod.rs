//! Shipping: doing what `decide` asks, with a log and a store.

mod error;
mod fork;
mod local;
mod options;
mod requests;
mod rotate;
mod run;
mod start;
mod state;
mod trim;
mod trouble;
mod upkeep;

pub use error::ShipError;
pub use options::ShipOptions;
pub use run::{Report, Shipping};
pub use start::start;
pub use trim::{Trimmed, trim, would_delete};
pub use upkeep::KeepOptions;
