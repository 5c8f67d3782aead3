//! Looking for damage, and saving what is readable.

use std::ffi::{CString, c_char, c_int};
use std::mem::MaybeUninit;

use vellum::stat::Damage;

use crate::boundary::{self, Failure, guard, guard_or, required};
use crate::growing::{Growing, Place};
use crate::last_error::{LastError, path_text, text};
use crate::log::vellum_log;
use crate::status::vellum_status::{VELLUM_OK, VELLUM_OUT_OF_RANGE};

/// The damage of a log, piece by piece.
///
/// From vellum_verify or vellum_repair, until vellum_damage_list_free.
pub struct vellum_damage_list {
    damage: Vec<Piece>,
}

/// One piece, with texts as C gets them.
struct Piece {
    path: CString,
    reason: CString,
    offset: u64,
    lsn: u64,
}

/// One thing that is wrong with a log.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct vellum_damage {
    /// sizeof(vellum_damage), set by the caller.
    pub struct_size: usize,
    /// The file. Borrowed from the list.
    pub path: *const c_char,
    /// The fault there. Borrowed from the list.
    pub reason: *const c_char,
    /// Byte of the file.
    pub offset: u64,
    /// Position in the log.
    pub lsn: u64,
}

// SAFETY: repr(C), size first, words and pointers only.
unsafe impl Growing for vellum_damage {}

/// Counts of vellum_verify.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct vellum_verify_report {
    /// sizeof(vellum_verify_report), set by the caller.
    pub struct_size: usize,
    /// Whole records (framed) or lines (text).
    pub records: u64,
    /// Bytes of those.
    pub record_bytes: u64,
    /// Spaces that were skipped, abandoned, or left by the dead.
    pub pads: u64,
    /// Commit records, by which recovery finds the durable end.
    pub commit_records: u64,
    /// Bytes of pads and commit records.
    pub pad_bytes: u64,
    /// Batches of records.
    pub batches: u64,
    /// Oldest position.
    pub begin: u64,
    /// Published end, up to which everything was looked at.
    pub end: u64,
    /// Things that are wrong; 0 when the log is good.
    pub damage_count: u64,
}

// SAFETY: repr(C), size first, words only.
unsafe impl Growing for vellum_verify_report {}

/// Counts of vellum_repair.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct vellum_repair_report {
    /// sizeof(vellum_repair_report), set by the caller.
    pub struct_size: usize,
    /// Records that were readable, and are in the new log.
    pub records: u64,
    /// Bytes of those.
    pub record_bytes: u64,
    /// Things that were not readable.
    pub damage_count: u64,
}

// SAFETY: repr(C), size first, words only.
unsafe impl Growing for vellum_repair_report {}

/// Reads every byte of the log from its beginning to the published end. Changes nothing.
///
/// `report` and `damage` may be NULL; `*damage` is to be freed by vellum_damage_list_free. Damage
/// is no error but part of the report: look at report.damage_count.
///
/// Errors: VELLUM_IO where files cannot be read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vellum_verify(
    log: Option<&vellum_log>,
    report: *mut vellum_verify_report,
    damage: Option<&mut MaybeUninit<*mut vellum_damage_list>>,
) -> c_int {
    guard(|| {
        let log = required(log, "log")?;
        // SAFETY: the caller's structure is as long as it says.
        let place = unsafe { Place::new(report) }?;
        let found = log.log.verify()?;
        place.put(&vellum_verify_report {
            struct_size: 0,
            records: found.records,
            record_bytes: found.record_bytes,
            pads: found.pads,
            commit_records: found.commit_records,
            pad_bytes: found.pad_bytes,
            batches: found.batches,
            begin: found.begin.get(),
            end: found.end.get(),
            damage_count: found.damage.len() as u64,
        });
        give_list(damage, &found.damage);
        Ok(VELLUM_OK)
    })
}

/// Saves what is readable of the log in `from` into a new log in `to`; changes nothing in `from`.
///
/// No process may have `from` open. Records of a framed log keep their positions; lines get new
/// ones. `report` and `damage` may be NULL; `*damage` is to be freed by vellum_damage_list_free.
///
/// Errors: VELLUM_NOT_FOUND where there is no log; VELLUM_ALREADY_EXISTS where there is one in
/// `to`; VELLUM_CORRUPT where nothing is left to tell records from garbage; otherwise as
/// vellum_append.
///
/// Durable: on return the new log survives a power cut.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vellum_repair(
    from: *const c_char,
    to: *const c_char,
    report: *mut vellum_repair_report,
    damage: Option<&mut MaybeUninit<*mut vellum_damage_list>>,
) -> c_int {
    guard(|| {
        // SAFETY: the caller's paths end with a NUL.
        let (from, to) = unsafe { (boundary::path(from, "from")?, boundary::path(to, "to")?) };
        // SAFETY: the caller's structure is as long as it says.
        let place = unsafe { Place::new(report) }?;
        let saved = vellum::repair(from, to)?;
        place.put(&vellum_repair_report {
            struct_size: 0,
            records: saved.records,
            record_bytes: saved.record_bytes,
            damage_count: saved.damage.len() as u64,
        });
        give_list(damage, &saved.damage);
        Ok(VELLUM_OK)
    })
}

/// How many pieces of damage a list has. 0 for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_damage_list_count(list: Option<&vellum_damage_list>) -> usize {
    guard_or(0, || Ok(required(list, "list")?.damage.len()))
}

/// Piece number `index` of a list, from 0. Its texts are borrowed until the list is freed.
///
/// Errors: VELLUM_OUT_OF_RANGE where there are no more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vellum_damage_list_get(
    list: Option<&vellum_damage_list>,
    index: usize,
    damage: *mut vellum_damage,
) -> c_int {
    guard(|| {
        let list = required(list, "list")?;
        // SAFETY: the caller's structure is as long as it says.
        let place = unsafe { Place::required(damage, "damage") }?;
        let piece = element(&list.damage, index)?;
        place.put(&vellum_damage {
            struct_size: 0,
            path: piece.path.as_ptr(),
            reason: piece.reason.as_ptr(),
            offset: piece.offset,
            lsn: piece.lsn,
        });
        Ok(VELLUM_OK)
    })
}

/// Frees a list; NULL is fine.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_damage_list_free(list: Option<Box<vellum_damage_list>>) {
    guard_or((), || {
        drop(list);
        Ok(())
    });
}

/// An element of a list, or the failure that there is none.
pub(crate) fn element<T>(list: &[T], index: usize) -> Result<&T, Failure> {
    list.get(index).ok_or_else(|| {
        let message = format!("there is no element {index}: the list has {}", list.len());
        Failure::of(LastError::new(VELLUM_OUT_OF_RANGE, &message))
    })
}

fn give_list(place: Option<&mut MaybeUninit<*mut vellum_damage_list>>, damage: &[Damage]) {
    let Some(place) = place else { return };
    let piece = |damage: &Damage| Piece {
        path: path_text(&damage.path),
        reason: text(damage.reason.as_bytes()),
        offset: damage.offset,
        lsn: damage.lsn.get(),
    };
    let damage = damage.iter().map(piece).collect();
    place.write(Box::into_raw(Box::new(vellum_damage_list { damage })));
}
