#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

#[cfg(any(feature = "log", feature = "tracing"))]
mod events;
#[cfg(feature = "log")]
mod logger;
#[cfg(feature = "tracing")]
mod writer;

#[cfg(feature = "log")]
#[cfg_attr(docsrs, doc(cfg(feature = "log")))]
pub use logger::Logger;
#[cfg(feature = "tracing")]
#[cfg_attr(docsrs, doc(cfg(feature = "tracing")))]
pub use writer::{EventWriter, LogWriter};
