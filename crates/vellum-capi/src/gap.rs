//! The gaps of a log.

use std::ffi::{CString, c_char};
use std::time::SystemTime;

use vellum::Gap;

use crate::growing::{Growing, Place};
use crate::last_error::{path_text, text};
use crate::status::vellum_status::{self, VELLUM_END, VELLUM_OK};

/// A stretch of a log that cannot be read: a file that is gone, empty or cut short, or damage.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct vellum_gap {
    /// sizeof(vellum_gap), set by the caller.
    pub struct_size: usize,
    /// Where it begins.
    pub from: u64,
    /// Where the log continues.
    pub to: u64,
    /// How many bytes are missing, at most.
    pub bytes_max: u64,
    /// When what is missing was appended, at the earliest, in seconds since 1970; 0 where nothing
    /// tells.
    pub after_s: u64,
    /// The same, at the latest.
    pub before_s: u64,
    /// The file; of a text log's that is gone, the pattern of its name. Borrowed from the
    /// vellum_stat, or until the next vellum_reader_take_gap.
    pub path: *const c_char,
    /// Its fault, the remedy, the size and the time of the missing part: a sentence without its
    /// end. Borrowed in the same way.
    pub text: *const c_char,
}

// SAFETY: repr(C), size first, words and pointers only.
unsafe impl Growing for vellum_gap {}

/// The gaps that were skipped, oldest last, and the texts of the gap that was taken last.
#[derive(Default)]
pub(crate) struct Gaps {
    left: Vec<Gap>,
    texts: Option<GapTexts>,
}

impl Gaps {
    /// Puts the next gap into `place`; `more` are those that were found since.
    pub(crate) fn take(
        &mut self,
        place: Place<vellum_gap>,
        more: impl FnOnce() -> Vec<Gap>,
    ) -> vellum_status {
        if self.left.is_empty() {
            self.left = more();
            self.left.reverse();
        }
        let Some(found) = self.left.pop() else { return VELLUM_END };
        let texts = self.texts.insert(GapTexts::of(&found));
        place.put(&gap_of(&found, texts));
        VELLUM_OK
    }
}

/// Texts of a gap as C gets them.
pub(crate) struct GapTexts {
    path: CString,
    text: CString,
}

impl GapTexts {
    pub(crate) fn of(gap: &Gap) -> GapTexts {
        GapTexts { path: path_text(&gap.path), text: text(gap.what().as_bytes()) }
    }
}

pub(crate) fn gap_of(gap: &Gap, texts: &GapTexts) -> vellum_gap {
    let seconds = |time: Option<SystemTime>| {
        let since = time.and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok());
        since.map_or(0, |since| since.as_secs())
    };
    vellum_gap {
        struct_size: 0,
        from: gap.from.get(),
        to: gap.to.get(),
        bytes_max: gap.bytes_max,
        after_s: seconds(gap.after),
        before_s: seconds(gap.before),
        path: texts.path.as_ptr(),
        text: texts.text.as_ptr(),
    }
}
