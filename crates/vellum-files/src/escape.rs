//! Text that others have made, where people read it: names of files, answers of a server, lines of
//! a file. A terminal obeys some characters, and some change the order in which others are shown; a
//! newline could begin a message of its own.

use std::fmt::{self, Display, Formatter, Write};

/// The text with those characters as Rust writes them: `\u{1b}`.
pub fn escaped<T: Display>(text: T) -> Escaped<T> {
    Escaped { text, keeps_lines: false }
}

/// The same for a text of several lines.
pub fn escaped_lines<T: Display>(text: T) -> Escaped<T> {
    Escaped { text, keeps_lines: true }
}

/// See [`escaped`].
#[derive(Clone, Copy, Debug)]
pub struct Escaped<T> {
    text: T,
    keeps_lines: bool,
}

impl<T: Display> Display for Escaped<T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(Escaping { out: f, keeps_lines: self.keeps_lines }, "{}", self.text)
    }
}

struct Escaping<'a, 'b> {
    out: &'a mut Formatter<'b>,
    keeps_lines: bool,
}

impl Write for Escaping<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        text.chars().try_for_each(|c| match c {
            '\n' if self.keeps_lines => self.out.write_char(c),
            '\n' | '\r' | '\t' => write!(self.out, "{}", c.escape_default()),
            c if is_obeyed(c) => write!(self.out, "{}", c.escape_unicode()),
            c => self.out.write_char(c),
        })
    }
}

/// Controls, and the characters of Unicode that set directions and end lines.
fn is_obeyed(c: char) -> bool {
    let is_of_layout =
        matches!(c, '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c.is_control() || is_of_layout || matches!(c, '\u{61c}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_obeys_is_escaped_and_everything_else_stays() {
        let text = "ä\u{1b}[31m\u{9b}\u{7f}\u{202e}\n\t\\ “x”";
        let shown = "ä\\u{1b}[31m\\u{9b}\\u{7f}\\u{202e}\\n\\t\\\\ “x”".replace("\\\\ ", "\\ ");
        assert_eq!(escaped(text).to_string(), shown);
        assert_eq!(escaped_lines("a\nb\r").to_string(), "a\nb\\r");
    }
}
