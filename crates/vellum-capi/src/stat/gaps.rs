//! The gaps of a log, and the files that its rules have removed.

use std::ffi::c_int;

use vellum::stat::RemovedFiles;

use crate::boundary::{guard, required};
use crate::gap::{gap_of, vellum_gap};
use crate::growing::{Growing, Place};
use crate::stat::vellum_stat;
use crate::status::vellum_status::VELLUM_OK;
use crate::verify::element;

/// Files that the policy of a text log has removed since its control file was made, by the rule.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct vellum_removed {
    /// sizeof(vellum_removed), set by the caller.
    pub struct_size: usize,
    /// Files that retain_bytes removed.
    pub files_by_bytes: u64,
    /// Bytes of text in them.
    pub bytes_by_bytes: u64,
    /// Files that retain_age_s removed.
    pub files_by_age: u64,
    /// Bytes of text in them.
    pub bytes_by_age: u64,
    /// Files that retain_files removed.
    pub files_by_files: u64,
    /// Bytes of text in them.
    pub bytes_by_files: u64,
    /// Files that the log has dropped, and that could not be removed: another user's in a sticky
    /// directory, for example.
    pub files_left_over: u64,
    /// Bytes of text in them.
    pub bytes_left_over: u64,
}

// SAFETY: repr(C), size first, words only.
unsafe impl Growing for vellum_removed {}

/// Gap number `index`, oldest first. Errors: VELLUM_OUT_OF_RANGE where there are no more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vellum_stat_gap(
    stat: Option<&vellum_stat>,
    index: usize,
    gap: *mut vellum_gap,
) -> c_int {
    guard(|| {
        let stat = required(stat, "stat")?;
        // SAFETY: the caller's structure is as long as it says.
        let place = unsafe { Place::required(gap, "gap") }?;
        let found = element(&stat.stat.gaps, index)?;
        place.put(&gap_of(found, &stat.texts.gaps[index]));
        Ok(VELLUM_OK)
    })
}

/// The files that the log's policy has removed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vellum_stat_removed(
    stat: Option<&vellum_stat>,
    removed: *mut vellum_removed,
) -> c_int {
    guard(|| {
        let stat = &required(stat, "stat")?.stat;
        let found = &stat.removed;
        // SAFETY: the caller's structure is as long as it says.
        let place = unsafe { Place::required(removed, "removed") }?;
        let of = |removed: RemovedFiles| (removed.files, removed.bytes);
        let (files_by_bytes, bytes_by_bytes) = of(found.by_bytes);
        let (files_by_age, bytes_by_age) = of(found.by_age);
        let (files_by_files, bytes_by_files) = of(found.by_files);
        let (files_left_over, bytes_left_over) = of(stat.left_over);
        place.put(&vellum_removed {
            struct_size: 0,
            files_by_bytes,
            bytes_by_bytes,
            files_by_age,
            bytes_by_age,
            files_by_files,
            bytes_by_files,
            files_left_over,
            bytes_left_over,
        });
        Ok(VELLUM_OK)
    })
}
