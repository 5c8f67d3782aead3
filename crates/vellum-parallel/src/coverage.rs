//! Which bytes of the file have been claimed, so that no two pieces overlap.
//!
//! Neighbours are joined, so the list is as long as the file has gaps at the moment.

use std::collections::BTreeMap;

/// Ranges by their start, each with its end; none empty, none touching another.
#[derive(Debug, Default)]
pub(super) struct Coverage {
    ranges: BTreeMap<u64, u64>,
    covered: u64,
}

impl Coverage {
    /// Takes the bytes from `begin` to `end` (at least one), or says which byte is taken already.
    pub(super) fn claim(&mut self, mut begin: u64, mut end: u64) -> Result<(), u64> {
        if let Some((&start, &stop)) = self.ranges.range(..end).next_back()
            && stop > begin
        {
            return Err(start.max(begin));
        }
        self.covered += end - begin;
        if let Some((&start, &stop)) = self.ranges.range(..begin).next_back()
            && stop == begin
        {
            begin = start;
        }
        if let Some(stop) = self.ranges.remove(&end) {
            end = stop;
        }
        self.ranges.insert(begin, end);
        Ok(())
    }

    /// The end of the last range.
    pub(super) fn end(&self) -> u64 {
        self.ranges.last_key_value().map_or(0, |(_, &end)| end)
    }

    /// Bytes taken in all.
    pub(super) fn covered(&self) -> u64 {
        self.covered
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_agree_with_a_list_of_bytes() {
        let mut bytes = [false; 64];
        let mut coverage = Coverage::default();
        let mut state = 1_u64;
        for _ in 0..2000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let begin = (state >> 33) % 64;
            let end = begin + 1 + (state >> 50) % (64 - begin);
            let wanted = &mut bytes[begin as usize..end as usize];
            let is_free = !wanted.contains(&true);
            assert_eq!(coverage.claim(begin, end).is_ok(), is_free, "{begin}..{end}");
            if is_free {
                wanted.fill(true);
            }
            let covered = bytes.iter().filter(|byte| **byte).count() as u64;
            assert_eq!(coverage.covered(), covered);
            let end = bytes.iter().rposition(|byte| *byte).map_or(0, |last| last as u64 + 1);
            assert_eq!(coverage.end(), end);
            if covered == 64 {
                assert_eq!(coverage.ranges.len(), 1, "neighbours are joined");
                (bytes, coverage) = ([false; 64], Coverage::default());
            }
        }
    }

    #[test]
    fn an_overlap_is_named_by_its_first_byte() {
        let mut coverage = Coverage::default();
        coverage.claim(10, 20).unwrap();
        assert_eq!(coverage.claim(5, 11), Err(10));
        assert_eq!(coverage.claim(15, 16), Err(15));
        assert_eq!(coverage.claim(19, 30), Err(19));
        assert_eq!(coverage.claim(20, 30), Ok(()));
    }
}
