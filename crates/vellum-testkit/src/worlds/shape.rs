//! What the logs of campaigns are made of.

use std::fmt;
use std::str::FromStr;

use vellum::{Fill, Layout, Options};

/// A kind of log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Mapped,
    Pwrite,
    Wal,
    Text,
    TextPwrite,
}

/// All of them.
pub(crate) const SHAPES: [Shape; 5] =
    [Shape::Wal, Shape::Mapped, Shape::Text, Shape::Pwrite, Shape::TextPwrite];

/// Small enough that each campaign goes through several.
const SEGMENT_BYTES: u64 = 64 << 10;
const FILE_BYTES: u64 = 24 << 10;

impl Shape {
    pub(crate) fn layout(self) -> Layout {
        match self {
            Shape::Mapped | Shape::Pwrite | Shape::Wal => Layout::Framed,
            Shape::Text | Shape::TextPwrite => Layout::Text,
        }
    }

    /// How every worker opens such a log.
    pub(crate) fn options(self) -> Options {
        let options = match self {
            Shape::Wal => Options::wal(),
            Shape::Mapped | Shape::Text => Options::new().fill(Fill::Mapped),
            Shape::Pwrite | Shape::TextPwrite => Options::new().fill(Fill::Pwrite),
        };
        let options = options.segment_capacity_bytes(SEGMENT_BYTES);
        match self.layout() {
            Layout::Text => options.layout(Layout::Text).rotate_bytes(FILE_BYTES).compress(true),
            framed => options.layout(framed),
        }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Shape::Mapped => "mapped",
            Shape::Pwrite => "pwrite",
            Shape::Wal => "wal",
            Shape::Text => "text",
            Shape::TextPwrite => "text-pwrite",
        })
    }
}

impl FromStr for Shape {
    type Err = String;

    fn from_str(name: &str) -> Result<Shape, String> {
        SHAPES
            .into_iter()
            .find(|shape| shape.to_string() == name)
            .ok_or_else(|| "a log is wal, mapped, pwrite, text or text-pwrite".into())
    }
}
