//! Whole numbers in decimal.

/// The digits of a number, and its sign.
pub(crate) struct Digits {
    bytes: [u8; LEN_MAX],
    begin: usize,
}

/// Of `i64::MIN`.
const LEN_MAX: usize = 20;

impl Digits {
    pub(crate) fn of(number: i64) -> Digits {
        let mut digits = Digits { bytes: [0; LEN_MAX], begin: LEN_MAX };
        let mut rest = number.unsigned_abs();
        loop {
            digits.push_front(b'0' + (rest % 10) as u8);
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        if number < 0 {
            digits.push_front(b'-');
        }
        digits
    }

    pub(crate) fn as_str(&self) -> &str {
        std::str::from_utf8(self.as_bytes()).unwrap_or_default()
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[self.begin..]
    }

    fn push_front(&mut self, byte: u8) {
        self.begin -= 1;
        self.bytes[self.begin] = byte;
    }
}
