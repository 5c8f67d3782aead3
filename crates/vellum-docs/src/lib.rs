//! The rules of the repository are the tests of this crate. Here are the pages of the documentation
//! with programs in Rust, so that these are compiled by the tests.

/// The front page.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
pub struct Readme;

/// The guide for Rust.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/rust.md")]
pub struct Guide;

/// The page of the crate `vellum-advice`.
#[cfg(doctest)]
#[doc = include_str!("../../vellum-advice/README.md")]
pub struct AdviceCrate;

/// The page of the crate `vellum-loggers`.
#[cfg(doctest)]
#[doc = include_str!("../../vellum-loggers/README.md")]
pub struct LoggersCrate;

/// The page of the crate `vellum-ship-figures`.
#[cfg(doctest)]
#[doc = include_str!("../../vellum-ship-figures/README.md")]
pub struct ShipFiguresCrate;

/// The page of the crate `vellum-parallel`.
#[cfg(doctest)]
#[doc = include_str!("../../vellum-parallel/README.md")]
pub struct ParallelCrate;
