//! Positions that are stored outside of a log, and which log they are of.

use std::ffi::{CStr, c_char, c_int};
use std::mem::MaybeUninit;

use vellum::{LogId, Lsn, Position};

use crate::boundary::{Failure, Outcome, guard, guard_or, null, required};
use crate::log::vellum_log;
use crate::reader::vellum_reader;
use crate::status::vellum_status::VELLUM_OK;

/// Bytes that hold any position as text, its NUL included.
pub const VELLUM_POSITION_TEXT_BYTES: usize = 80;

/// The record that was at the position.
pub const VELLUM_POSITION_RECORD: u32 = 0;
/// The position is behind the handled record: a record's next_lsn, or the end of the log. It holds
/// as long as everything before it is unchanged.
pub const VELLUM_POSITION_NEXT: u32 = 1;

/// A position that can be stored outside of the log: which log it is of, and from which epoch.
///
/// A bare lsn means something else in another log, and may mean something else after a power cut or
/// a truncation. vellum_resolve gives the lsn of the same record or an error.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct vellum_position {
    /// The id of the log.
    pub log: [u8; 16],
    /// The epoch of the log in which the position was taken.
    pub epoch: u64,
    /// The position in the log.
    pub lsn: u64,
}

impl From<Position> for vellum_position {
    fn from(position: Position) -> vellum_position {
        let Position { log, epoch, lsn } = position;
        vellum_position { log: log.to_bytes(), epoch, lsn: lsn.get() }
    }
}

impl vellum_position {
    fn to_rust(self) -> Position {
        let vellum_position { log, epoch, lsn } = self;
        Position { log: LogId::from_bytes(log), epoch, lsn: Lsn::new(lsn) }
    }
}

/// The 16 bytes of the log's id, which is random and never changes.
///
/// Errors: VELLUM_UNSUPPORTED where an earlier version made the log and no process has opened it
/// for writing since, with some space on the disk.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_log_id(
    log: Option<&vellum_log>,
    id: Option<&mut MaybeUninit<[u8; 16]>>,
) -> c_int {
    guard(|| {
        let (log, place) = (required(log, "log")?, required(id, "id")?);
        place.write(log.log.position(Lsn::ZERO)?.log.to_bytes());
        Ok(VELLUM_OK)
    })
}

/// The epoch in which this handle was opened, or which its own vellum_truncate began; 0 for NULL
/// and for a log without an id. vellum_summary.epoch is the one that the log is in.
///
/// An epoch ends whenever positions may be given out again that were visible: when the log is
/// recovered (after a power cut, in a copy, without its control file), and when it is truncated.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_epoch(log: Option<&vellum_log>) -> u64 {
    guard_or(0, || -> Outcome<u64> { Ok(required(log, "log")?.log.epoch()) })
}

/// The position `lsn` in a form to be stored outside of the log; `lsn` is one that this handle
/// returned. A reader takes vellum_reader_position_of where others truncate.
///
/// Errors: VELLUM_UNSUPPORTED as for vellum_log_id. Cost: a read of memory.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_position_of(
    log: Option<&vellum_log>,
    lsn: u64,
    position: Option<&mut MaybeUninit<vellum_position>>,
) -> c_int {
    guard(|| {
        let (log, place) = (required(log, "log")?, required(position, "position")?);
        place.write(log.log.position(Lsn::new(lsn))?.into());
        Ok(VELLUM_OK)
    })
}

/// The position `lsn`, which this reader has come to or passed, in a form to be stored. Right also
/// while others truncate.
///
/// Errors and cost: as for vellum_position_of.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_reader_position_of(
    reader: Option<&vellum_reader>,
    lsn: u64,
    position: Option<&mut MaybeUninit<vellum_position>>,
) -> c_int {
    guard(|| {
        let (reader, place) = (required(reader, "reader")?, required(position, "position")?);
        place.write(reader.reader().position_of(Lsn::new(lsn))?.into());
        Ok(VELLUM_OK)
    })
}

/// The lsn of a stored position, which holds what it held. `meaning` is VELLUM_POSITION_RECORD or
/// VELLUM_POSITION_NEXT.
///
/// Errors: VELLUM_OTHER_LOG for a position of another log; VELLUM_REWOUND where something else may
/// be there: vellum_last_error_lsn is from where on the log may differ, or 0 where that is not
/// known; VELLUM_TRIMMED and VELLUM_OUT_OF_RANGE as for vellum_reader_open.
///
/// Cost: as for vellum_reader_open.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_resolve(
    log: Option<&vellum_log>,
    position: Option<&vellum_position>,
    meaning: u32,
    lsn: Option<&mut MaybeUninit<u64>>,
) -> c_int {
    guard(|| {
        let place = required(lsn, "lsn")?;
        place.write(open(log, position, meaning)?.position().get());
        Ok(VELLUM_OK)
    })
}

/// A reader that starts at a stored position: at the record that it was taken for, or with
/// VELLUM_POSITION_NEXT behind the handled record. `*reader` is to be closed by
/// vellum_reader_close.
///
/// Errors: as for vellum_resolve.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_reader_open_at(
    log: Option<&vellum_log>,
    position: Option<&vellum_position>,
    meaning: u32,
    reader: Option<&mut MaybeUninit<*mut vellum_reader>>,
) -> c_int {
    guard(|| {
        let place = required(reader, "reader")?;
        let reader = vellum_reader::from(open(log, position, meaning)?);
        place.write(Box::into_raw(Box::new(reader)));
        Ok(VELLUM_OK)
    })
}

fn open(
    log: Option<&vellum_log>,
    position: Option<&vellum_position>,
    meaning: u32,
) -> Outcome<vellum::Reader> {
    let (log, position) = (required(log, "log")?, required(position, "position")?);
    let position = position.to_rust();
    Ok(match meaning {
        VELLUM_POSITION_RECORD => log.log.reader_at(position)?,
        VELLUM_POSITION_NEXT => log.log.reader_at_next(position)?,
        other => return Err(Failure::argument(&format!("{other} is no meaning of a position"))),
    })
}

/// Writes a position as one line of text, `id/epoch/lsn`, with a NUL behind it, into `size` bytes
/// at `text`: VELLUM_POSITION_TEXT_BYTES are enough.
///
/// Errors: VELLUM_INVALID_ARGUMENT where it does not fit; nothing is written then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vellum_position_to_text(
    position: Option<&vellum_position>,
    text: *mut c_char,
    size: usize,
) -> c_int {
    guard(|| {
        let position = required(position, "position")?;
        if text.is_null() {
            return Err(null("text"));
        }
        let line = position.to_rust().to_string();
        if line.len() >= size {
            let message = format!("a position needs {} bytes, not {size}", line.len() + 1);
            return Err(Failure::argument(&message));
        }
        // SAFETY: the caller has `size` bytes there, which are more than the line has.
        unsafe {
            std::ptr::copy_nonoverlapping(line.as_ptr(), text.cast(), line.len());
            text.add(line.len()).write(0);
        }
        Ok(VELLUM_OK)
    })
}

/// Reads a position from its text, blanks and a newline around it left out.
///
/// Errors: VELLUM_INVALID_OPTION for any other text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vellum_position_from_text(
    text: *const c_char,
    position: Option<&mut MaybeUninit<vellum_position>>,
) -> c_int {
    guard(|| {
        let place = required(position, "position")?;
        if text.is_null() {
            return Err(null("text"));
        }
        // SAFETY: the caller's text ends with a NUL.
        let text = unsafe { CStr::from_ptr(text) }.to_string_lossy();
        place.write(text.parse::<Position>()?.into());
        Ok(VELLUM_OK)
    })
}
