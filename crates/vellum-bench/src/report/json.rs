//! JSON that people can read too: the outer levels in lines, a metric or a key in one line.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};

use crate::error::{Error, Result};

/// Of a report, the list of cases, a case and its lists are broken into lines; their contents are
/// not.
const LEVELS: usize = 4;

/// `value` as JSON, with a newline at the end.
pub(crate) fn text(value: &impl Serialize) -> Result<String> {
    let failed = |error: &dyn std::fmt::Display| Error::failed(format!("write JSON: {error}"));
    let mut bytes = Vec::new();
    let mut serializer = Serializer::with_formatter(&mut bytes, Lines::default());
    value.serialize(&mut serializer).map_err(|error| failed(&error))?;
    bytes.push(b'\n');
    String::from_utf8(bytes).map_err(|error| failed(&error))
}

#[derive(Default)]
struct Lines {
    level: usize,
    has_value: bool,
}

impl Lines {
    fn open<W: Write + ?Sized>(&mut self, writer: &mut W, bracket: u8) -> io::Result<()> {
        self.level += 1;
        self.has_value = false;
        writer.write_all(&[bracket])
    }

    fn close<W: Write + ?Sized>(&mut self, writer: &mut W, bracket: u8) -> io::Result<()> {
        self.level -= 1;
        if self.has_value && self.level < LEVELS {
            self.line(writer)?;
        }
        self.has_value = true;
        writer.write_all(&[bracket])
    }

    fn part<W: Write + ?Sized>(&mut self, writer: &mut W, is_first: bool) -> io::Result<()> {
        if !is_first {
            writer.write_all(b",")?;
        }
        match self.level <= LEVELS {
            true => self.line(writer),
            false if is_first => Ok(()),
            false => writer.write_all(b" "),
        }
    }

    fn line<W: Write + ?Sized>(&self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b"\n")?;
        writer.write_all("  ".repeat(self.level).as_bytes())
    }
}

impl Formatter for Lines {
    fn begin_array<W: Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.open(writer, b'[')
    }

    fn end_array<W: Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.close(writer, b']')
    }

    fn begin_array_value<W: Write + ?Sized>(&mut self, to: &mut W, first: bool) -> io::Result<()> {
        self.part(to, first)
    }

    fn end_array_value<W: Write + ?Sized>(&mut self, _: &mut W) -> io::Result<()> {
        self.has_value = true;
        Ok(())
    }

    fn begin_object<W: Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.open(writer, b'{')
    }

    fn end_object<W: Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.close(writer, b'}')
    }

    fn begin_object_key<W: Write + ?Sized>(&mut self, to: &mut W, first: bool) -> io::Result<()> {
        self.part(to, first)
    }

    fn begin_object_value<W: Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }

    fn end_object_value<W: Write + ?Sized>(&mut self, _: &mut W) -> io::Result<()> {
        self.has_value = true;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_deep_stands_in_one_line() {
        let value =
            json!({"cases": [{"metrics": [{"name": "p99", "samples": [1.5, 2.0]}]}], "w": []});
        let lines = "\
{
  \"cases\": [
    {
      \"metrics\": [
        {\"name\": \"p99\", \"samples\": [1.5, 2.0]}
      ]
    }
  ],
  \"w\": []
}
";
        assert_eq!(text(&value).unwrap(), lines);
    }
}
