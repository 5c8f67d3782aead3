//! The report of a shipper each minute, where no terminal shows its progress.

use crate::output;

/// The last report, which is not repeated.
#[derive(Debug, Default)]
pub(super) struct Minute {
    done_bytes: u64,
    behind_bytes: u64,
}

impl Minute {
    /// Nothing was said since so many bytes were done.
    pub(super) fn after(done_bytes: u64) -> Minute {
        Minute { done_bytes, behind_bytes: 0 }
    }

    /// The line to print, if there is one.
    pub(super) fn line(&mut self, done_bytes: u64, behind_bytes: u64) -> Option<String> {
        let is_new = (done_bytes, behind_bytes) != (self.done_bytes, self.behind_bytes);
        let more = output::bytes(done_bytes.saturating_sub(self.done_bytes));
        *self = Minute { done_bytes, behind_bytes };
        is_new.then(|| format!("{more} more, {} behind", output::bytes(behind_bytes)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minute_tells_what_came_in_it_and_nothing_where_nothing_did() {
        let mut minute = Minute::after(1000);
        assert_eq!(minute.line(1000, 0), None);
        assert_eq!(minute.line(3048, 512).unwrap(), "2 KiB more, 512 B behind");
        assert_eq!(minute.line(3048, 512), None);
        // The store takes nothing.
        assert_eq!(minute.line(3048, 1024).unwrap(), "0 B more, 1 KiB behind");
        assert_eq!(minute.line(4072, 0).unwrap(), "1 KiB more, 0 B behind");
        assert_eq!(minute.line(4072, 0), None);
    }
}
