//! The kinds of logs in campaigns.

use std::fmt;
use std::str::FromStr;

use vellum::{Fill, Layout, Options, Tuning};

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

    pub(crate) fn is_text(self) -> bool {
        self.layout() == Layout::Text
    }

    /// How every worker opens such a log.
    pub(crate) fn options(self) -> Options {
        self.sized(SEGMENT_BYTES, FILE_BYTES)
    }

    /// Such a log, with segments and text files of these sizes.
    fn sized(self, segment_bytes: u64, file_bytes: u64) -> Options {
        let options =
            self.unsized_options().tuning(Tuning::new().segment_capacity_bytes(segment_bytes));
        match self.is_text() {
            true => options.rotate_bytes(file_bytes).compress(true),
            false => options,
        }
    }

    fn unsized_options(self) -> Options {
        let filled = |options: Options, fill| options.tuning(Tuning::new().fill(fill));
        match self {
            Shape::Wal => Options::wal().exclusive(false),
            Shape::Mapped => filled(Options::events(), Fill::Mapped),
            Shape::Pwrite => filled(Options::events(), Fill::Pwrite),
            Shape::Text => filled(Options::mapped_text(), Fill::Mapped),
            Shape::TextPwrite => Options::text(),
        }
    }
}

/// How large the files of a log are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Size {
    /// Without a choice.
    Usual,
    /// Some of them fit into a disk of 60 MB.
    Small,
}

impl Size {
    /// How such a log is opened.
    pub(crate) fn options(self, shape: Shape) -> Options {
        match self {
            Size::Usual => shape.unsized_options(),
            Size::Small => shape.sized(2 << 20, 512 << 10),
        }
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(if *self == Size::Usual { "usual" } else { "small" })
    }
}

impl FromStr for Size {
    type Err = String;

    fn from_str(name: &str) -> Result<Size, String> {
        let found = [Size::Usual, Size::Small].into_iter().find(|size| size.to_string() == name);
        found.ok_or_else(|| "files are usual or small".into())
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
