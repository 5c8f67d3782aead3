//! The appended records, which show when they are lost, torn, doubled or out of order.
//!
//! ```text
//! 16 bytes and more      PPPP SSSSSSSSSSS bbbb…bbbb \n
//!                        process, sequence, body, newline
//! 2 to 15 bytes          T SSS… \n
//!                        tag of the process, low digits of the sequence, newline
//! 1 byte                 T
//! ```
//!
//! All bytes are printable and the only newline is the last byte, so that the same bytes serve a
//! text log and every other way alike. The body depends on the process and on the turn (the
//! sequence modulo a small number), so a record whose parts come from two records, or from old
//! bytes of the file, is not equal to any record that was appended. A record of one byte can only
//! tell whose it is: of those, verification counts.
//!
//! Bodies are made before the clock starts. Under it a record costs the stamping of eight digits,
//! a nanosecond or two, the same for every way.

/// From this length on a record carries process and sequence in full.
pub(crate) const STAMPED_BYTES_MIN: usize = 16;

/// How many processes tiny records can tell apart: the printable characters but the blank.
pub(crate) const TAG_COUNT: u32 = (TAG_LAST - TAG_FIRST) as u32 + 1;

/// How many records of one process the sequence digits can count.
pub(crate) const RECORDS_MAX: u64 = 10_u64.pow(SEQUENCE_DIGITS as u32);

const TAG_FIRST: u8 = b'!';
const TAG_LAST: u8 = b'~';
const PROCESS_DIGITS: usize = 4;
const SEQUENCE_DIGITS: usize = 11;
const STAMP_BYTES: usize = PROCESS_DIGITS + SEQUENCE_DIGITS;
const LOW_DIGITS: usize = 8;

/// All bodies of a process together stay within this, so that the source of the copies is in the
/// first-level cache for every way, as it is for a program that has just made its record.
const BODIES_BYTES: usize = 16 * 1024;
const TURNS_MIN: usize = 2;
const TURNS_MAX: usize = 7;

const _: () = assert!(STAMP_BYTES < STAMPED_BYTES_MIN, "the newline follows the stamp");

/// The records of one process, one after the other.
pub(crate) struct Records {
    process: u32,
    bytes: usize,
    /// One record per turn, complete but for the fields that count on from record to record.
    templates: Box<[u8]>,
    turns: usize,
    /// Turn of the next record: its sequence modulo `turns`.
    turn: usize,
    /// Sequence of the next record.
    sequence: u64,
    /// The last eight digits of `sequence`: text, the first digit in the highest byte; the last one
    /// may be one more than '9' until the next record is asked for. Only stamped records use it.
    /// In a register, so that counting is an addition and stamping a single move, and the loop
    /// under the clock pays for little but the append.
    low_digits: u64,
}

impl Records {
    /// The records of `process`, each `bytes` long, from sequence 0.
    pub(crate) fn new(process: u32, bytes: usize) -> Records {
        let turns = turns(bytes);
        let mut templates = vec![0; turns * bytes].into_boxed_slice();
        for (turn, template) in templates.chunks_exact_mut(bytes).enumerate() {
            fill_body(template, process, turn);
        }
        let (turn, sequence, low_digits) = (0, 0, 0);
        let mut records = Records { process, bytes, templates, turns, turn, sequence, low_digits };
        records.seek(0);
        records
    }

    /// Memory that one of these takes.
    pub(crate) fn memory_bytes(bytes: usize) -> u64 {
        (turns(bytes) * bytes) as u64
    }

    /// One record per turn, complete but for its number.
    pub(crate) fn templates(&self) -> &[u8] {
        &self.templates
    }

    /// Makes `sequence` the next record.
    pub(crate) fn seek(&mut self, sequence: u64) {
        self.sequence = sequence;
        self.turn = (sequence % self.turns as u64) as usize;
        if self.bytes < STAMPED_BYTES_MIN {
            return;
        }
        let mut stamp = [0; STAMP_BYTES];
        write_digits(&mut stamp[..PROCESS_DIGITS], u64::from(self.process));
        write_digits(&mut stamp[PROCESS_DIGITS..], sequence);
        for template in self.templates.chunks_exact_mut(self.bytes) {
            template[..STAMP_BYTES].copy_from_slice(&stamp);
        }
        let mut low_digits = [0; LOW_DIGITS];
        write_digits(&mut low_digits, sequence);
        self.low_digits = u64::from_be_bytes(low_digits);
    }

    /// The next record. Not an `Iterator`: the record is overwritten some turns later.
    #[inline]
    pub(crate) fn next_record(&mut self) -> &[u8] {
        let start = self.turn * self.bytes;
        if self.bytes >= STAMPED_BYTES_MIN {
            if self.low_digits as u8 > b'9' {
                self.carry();
            }
            let stamp = &mut self.templates[start..start + STAMP_BYTES];
            stamp[STAMP_BYTES - LOW_DIGITS..].copy_from_slice(&self.low_digits.to_be_bytes());
            self.turn = if self.turn + 1 == self.turns { 0 } else { self.turn + 1 };
            self.sequence += 1;
            self.low_digits += 1;
        } else if self.bytes > 1 {
            let last = self.bytes - 1;
            write_digits(&mut self.templates[1..last], self.sequence);
            self.sequence += 1;
        }
        &self.templates[start..start + self.bytes]
    }

    /// The last digit has become ten: makes it 0, and the one before it one more, and so on.
    fn carry(&mut self) {
        const TOP: u32 = 8 * (LOW_DIGITS as u32 - 1);
        for shift in (0..TOP).step_by(8) {
            if (self.low_digits >> shift) as u8 <= b'9' {
                return;
            }
            self.low_digits -= 10 << shift;
            self.low_digits += 1 << (shift + 8);
        }
        if (self.low_digits >> TOP) as u8 > b'9' {
            // Once in a hundred million records the digits before these change too.
            self.seek(self.sequence);
        }
    }
}

/// The process that this record names; `None` if it names none.
pub(crate) fn process_of(record: &[u8]) -> Option<u32> {
    if record.len() >= STAMPED_BYTES_MIN {
        return read_digits(&record[..PROCESS_DIGITS]).map(|process| process as u32);
    }
    let tag = *record.first()?;
    (TAG_FIRST..=TAG_LAST).contains(&tag).then(|| u32::from(tag - TAG_FIRST))
}

/// Which record of its process this claims to be; `None` if it can't tell.
pub(crate) fn sequence_of(record: &[u8]) -> Option<u64> {
    let digits = record.get(PROCESS_DIGITS..STAMP_BYTES)?;
    read_digits(digits)
}

fn turns(bytes: usize) -> usize {
    if bytes < STAMPED_BYTES_MIN {
        return 1;
    }
    (BODIES_BYTES / bytes).clamp(TURNS_MIN, TURNS_MAX)
}

fn tag(process: u32) -> u8 {
    debug_assert!(process < TAG_COUNT);
    TAG_FIRST + process as u8
}

/// Fills a template: printable characters that follow from process and turn, and the newline.
fn fill_body(template: &mut [u8], process: u32, turn: usize) {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    if template.len() < STAMPED_BYTES_MIN {
        template.fill(tag(process));
    } else {
        let mut random = fastrand::Rng::with_seed(u64::from(process) << 8 | turn as u64);
        template.fill_with(|| ALPHABET[random.usize(..ALPHABET.len())]);
    }
    if let [_, .., last] = template {
        *last = b'\n';
    }
}

/// Writes the low decimal digits of `value`, as many as there is room for.
fn write_digits(room: &mut [u8], mut value: u64) {
    for digit in room.iter_mut().rev() {
        *digit = b'0' + (value % 10) as u8;
        value /= 10;
    }
}

fn read_digits(digits: &[u8]) -> Option<u64> {
    digits.iter().try_fold(0, |value, digit| {
        digit.is_ascii_digit().then(|| value * 10 + u64::from(digit - b'0'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTHS: [usize; 11] = [1, 2, 3, 7, 15, 16, 17, 128, 4095, 4096, 70_000];

    #[test]
    fn records_are_printable_and_end_with_their_only_newline() {
        for bytes in LENGTHS {
            let mut records = Records::new(3, bytes);
            for _ in 0..20 {
                let record = records.next_record();
                assert_eq!(record.len(), bytes);
                let (last, rest) = record.split_last().unwrap();
                assert!(rest.iter().all(|byte| byte.is_ascii_graphic()), "{bytes}");
                assert_eq!(*last == b'\n', bytes >= 2);
            }
        }
    }

    #[test]
    fn counting_on_and_seeking_give_the_same_record() {
        for bytes in LENGTHS {
            let mut counted = Records::new(9, bytes);
            let mut sought = Records::new(9, bytes);
            for sequence in 0..1234 {
                sought.seek(sequence);
                assert_eq!(counted.next_record(), sought.next_record(), "{bytes} {sequence}");
            }
        }
    }

    #[test]
    fn all_digits_carry() {
        let mut records = Records::new(7, 32);
        for power in 1..11 {
            let carried = 10_u64.pow(power);
            records.seek(carried - 3);
            for sequence in carried - 3..carried + 30 {
                assert_eq!(sequence_of(records.next_record()), Some(sequence));
            }
        }
    }

    #[test]
    fn a_stamped_record_names_its_process_and_sequence() {
        let mut records = Records::new(321, 64);
        records.seek(98_765);
        let record = records.next_record();
        assert_eq!(process_of(record), Some(321));
        assert_eq!(sequence_of(record), Some(98_765));
    }

    #[test]
    fn a_tiny_record_names_its_process() {
        for bytes in 1..STAMPED_BYTES_MIN {
            let mut records = Records::new(TAG_COUNT - 1, bytes);
            assert_eq!(process_of(records.next_record()), Some(TAG_COUNT - 1));
        }
    }

    #[test]
    fn neighbours_have_different_bodies() {
        let mut one = Records::new(1, 128);
        let mut two = Records::new(2, 128);
        let first = one.next_record()[STAMP_BYTES..].to_vec();
        assert_ne!(first, one.next_record()[STAMP_BYTES..]);
        assert_ne!(first, two.next_record()[STAMP_BYTES..]);
    }
}
