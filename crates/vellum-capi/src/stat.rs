//! The state of a log at one moment; its files and processes are in [`elements`], their holds in
//! [`holds`], missing ranges in [`gaps`], and shipping in [`ship`].

pub mod elements;
pub mod gaps;
pub mod holds;
pub mod ship;

use std::ffi::{CStr, CString, c_char, c_int};
use std::mem::MaybeUninit;
use std::path::PathBuf;
use std::ptr;
use std::time::Duration;

use vellum::stat::Stat;
use vellum::{Compression, Fill, Preallocate};
use vellum_ship_figures::Figures;

use crate::boundary::{guard, guard_or, required};
use crate::gap::GapTexts;
use crate::growing::{Growing, Place};
use crate::last_error::{path_text, text};
use crate::log::{layout_number, vellum_log, vellum_recovery};
use crate::options::VELLUM_ALL_FILES;
use crate::options::vellum_compress::*;
use crate::options::vellum_fill::*;
use crate::options::vellum_preallocate::*;
use crate::status::vellum_status::VELLUM_OK;

/// The state of a log at one moment: positions, files, processes.
///
/// From vellum_stat_take, until vellum_stat_free, which ends everything borrowed from it. Any
/// number of threads may look at it at once.
pub struct vellum_stat {
    pub(crate) stat: Stat,
    pub(crate) figures: Figures,
    pub(crate) texts: Texts,
}

/// Texts as C gets them.
pub(crate) struct Texts {
    preallocate_reason: CString,
    fill_reason: CString,
    filesystem: CString,
    advice: Option<CString>,
    stage: Option<CString>,
    poison: Option<CString>,
    segments: Vec<CString>,
    holds: Vec<CString>,
    gaps: Vec<GapTexts>,
    log_id: Option<CString>,
    pub(crate) cursors: Vec<CString>,
    cursors_fault: Option<CString>,
}

impl Texts {
    fn of(stat: &Stat) -> Texts {
        let path = |path: &Option<PathBuf>| path.as_deref().map(path_text);
        Texts {
            preallocate_reason: text(stat.preallocate_reason.as_bytes()),
            fill_reason: text(stat.fill_reason.as_bytes()),
            filesystem: text(stat.filesystem.as_bytes()),
            advice: path(&stat.advice),
            stage: path(&stat.stage),
            poison: stat.poison.as_ref().map(|poison| text(poison.as_bytes())),
            segments: stat.segments.iter().map(|segment| path_text(&segment.path)).collect(),
            holds: stat.holds.iter().map(|hold| text(hold.to_string().as_bytes())).collect(),
            gaps: stat.gaps.iter().map(GapTexts::of).collect(),
            log_id: stat.log_id.map(|id| text(id.to_string().as_bytes())),
            cursors: stat.cursors.iter().map(|cursor| text(cursor.name.as_bytes())).collect(),
            cursors_fault: stat.cursors_fault.as_ref().map(|fault| text(fault.as_bytes())),
        }
    }
}

/// Facts of a log, a word each. Texts are borrowed from the vellum_stat.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct vellum_summary {
    /// sizeof(vellum_summary), set by the caller.
    pub struct_size: usize,
    /// Oldest position still kept.
    pub begin: u64,
    /// End of the records that survive a power cut.
    pub durable: u64,
    /// End of the records that readers can see.
    pub published: u64,
    /// End of the reserved space.
    pub tail: u64,
    /// End of the last file that exists.
    pub prepared_end: u64,
    /// Position stored by vellum_set_checkpoint, or 0.
    pub checkpoint: u64,
    /// Bytes of log in a file.
    pub segment_capacity_bytes: u64,
    /// Reservations of dead processes that survivors padded.
    pub repairs: u64,
    /// Bytes of those.
    pub repaired_bytes: u64,
    /// Records that were dropped on a full disk: VELLUM_ON_FULL_DROP.
    pub dropped: u64,
    /// Files: vellum_stat_segment.
    pub segment_count: u64,
    /// Processes: vellum_stat_participant.
    pub participant_count: u64,
    /// A vellum_layout.
    pub layout: u32,
    /// A vellum_preallocate.
    pub preallocate: u32,
    /// A vellum_fill.
    pub fill: u32,
    /// 0.
    pub reserved: u32,
    /// Why space is made ready like that.
    pub preallocate_reason: *const c_char,
    /// Why records are written like that.
    pub fill_reason: *const c_char,
    /// The filesystem that the log is on.
    pub filesystem: *const c_char,
    /// The file that advised what the program left open when it created the log, or NULL.
    pub advice: *const c_char,
    /// Where records lie in memory until they are committed, or NULL.
    pub stage: *const c_char,
    /// Why nothing more can be made durable until the log is opened anew, or NULL.
    pub poison: *const c_char,
    /// The number of holds: vellum_stat_hold.
    pub hold_count: u64,
    /// Whether this process can see to it that the name of the log's directory survives a power
    /// cut: 0 where it may not read the directory above.
    pub can_sync_name: u64,
    /// Stretches of a text log that are missing: vellum_stat_gap.
    pub gap_count: u64,
    /// Records appended since the control file was made.
    pub records: u64,
    /// Bytes of log that they take: payloads, headers and padding.
    pub record_bytes: u64,
    /// Segments made since then.
    pub segments_made: u64,
    /// Bytes that wait in the stage until they are committed.
    pub staged_bytes: u64,
    /// The log's id as 32 hexadecimal digits, or NULL where an earlier version made it.
    pub log_id: *const c_char,
    /// Grows whenever positions may be given out again that were visible. 0 without an id.
    pub epoch: u64,
    /// vellum_options.application_tag with which the log was created, or 0.
    pub application_tag: u64,
    /// Named cursors: vellum_stat_cursor.
    pub cursor_count: u64,
    /// Why the cursors cannot be read, or NULL. Then no file is removed.
    pub cursors_fault: *const c_char,
    /// 1 if each record has a time and its writer (VELLUM_ENVELOPE), otherwise 0.
    pub has_envelope: u64,
    /// Between this position and lost_end vellum_repair or a restore left out records of a framed
    /// log; others between them were saved. Both 0 where none were left out.
    pub lost_from: u64,
    /// The end of that.
    pub lost_end: u64,
}

// SAFETY: repr(C), size first, words, pointers and two pairs of half words.
unsafe impl Growing for vellum_summary {}

/// Counts of commits since the control file was made.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct vellum_commits {
    /// sizeof(vellum_commits), set by the caller.
    pub struct_size: usize,
    /// Records, or moments, that callers wanted durable.
    pub commits: u64,
    /// Writes or syncs of the device that this took.
    pub syncs: u64,
    /// Bytes of log that they made durable.
    pub synced_bytes: u64,
    /// How long they took: entry i counts those of less than 2^i microseconds that are not in an
    /// earlier one; the last counts all longer ones too.
    pub sync_us: [u64; 24],
    /// How long they took together, in microseconds.
    pub sync_us_sum: u64,
}

// SAFETY: repr(C), size first, words only.
unsafe impl Growing for vellum_commits {}

/// When a text log continues in a new file, and which of its files it keeps, for all processes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct vellum_policy {
    /// sizeof(vellum_policy), set by the caller.
    pub struct_size: usize,
    /// As vellum_options.rotate_bytes; 0 is never.
    pub rotate_bytes: u64,
    /// As vellum_options.rotate_every_s; 0 is never.
    pub rotate_every_s: u64,
    /// As vellum_options.rotate_offset_s.
    pub rotate_offset_s: u64,
    /// As vellum_options.retain_bytes; 0 is no limit.
    pub retain_bytes: u64,
    /// As vellum_options.retain_age_s; 0 is for ever.
    pub retain_age_s: u64,
    /// As vellum_options.retain_files; VELLUM_ALL_FILES is no limit.
    pub retain_files: u64,
    /// VELLUM_COMPRESS_OFF, VELLUM_COMPRESS_ON (zstd) or VELLUM_COMPRESS_GZIP.
    pub compress: u32,
    /// 0.
    pub reserved: u32,
}

// SAFETY: repr(C), size first, words and a pair of half words.
unsafe impl Growing for vellum_policy {}

/// Looks at the state of the log, its files and its processes. Changes nothing.
///
/// `*stat` is to be freed by vellum_stat_free. Errors: VELLUM_NOT_FOUND where the
/// directory has gone; VELLUM_IO where it cannot be read.
///
/// Cost: a system call for each file and each process.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_stat_take(
    log: Option<&vellum_log>,
    stat: Option<&mut MaybeUninit<*mut vellum_stat>>,
) -> c_int {
    guard(|| {
        let log = required(log, "log")?;
        let place = required(stat, "stat")?;
        let stat = log.log.stat()?;
        // Where they cannot be read, the rest can.
        let figures = Figures::of(&log.log).unwrap_or_default();
        let texts = Texts::of(&stat);
        place.write(Box::into_raw(Box::new(vellum_stat { stat, figures, texts })));
        Ok(VELLUM_OK)
    })
}

/// Facts of the log, a word each.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vellum_stat_summary(
    stat: Option<&vellum_stat>,
    summary: *mut vellum_summary,
) -> c_int {
    guard(|| {
        let stat = required(stat, "stat")?;
        // SAFETY: the caller's structure is as long as it says.
        let place = unsafe { Place::required(summary, "summary") }?;
        place.put(&summary_of(&stat.stat, &stat.texts));
        Ok(VELLUM_OK)
    })
}

fn summary_of(stat: &Stat, texts: &Texts) -> vellum_summary {
    vellum_summary {
        struct_size: 0,
        begin: stat.begin.get(),
        durable: stat.durable.get(),
        published: stat.published.get(),
        tail: stat.tail.get(),
        prepared_end: stat.prepared_end.get(),
        checkpoint: stat.checkpoint.get(),
        segment_capacity_bytes: stat.segment_capacity_bytes,
        repairs: stat.repairs,
        repaired_bytes: stat.repaired_bytes,
        dropped: stat.dropped,
        segment_count: stat.segments.len() as u64,
        participant_count: stat.participants.len() as u64,
        layout: layout_number(stat.layout),
        preallocate: preallocate_number(stat.preallocate),
        fill: fill_number(stat.fill),
        reserved: 0,
        preallocate_reason: texts.preallocate_reason.as_ptr(),
        fill_reason: texts.fill_reason.as_ptr(),
        filesystem: texts.filesystem.as_ptr(),
        advice: or_null(texts.advice.as_deref()),
        stage: or_null(texts.stage.as_deref()),
        poison: or_null(texts.poison.as_deref()),
        hold_count: stat.holds.len() as u64,
        can_sync_name: u64::from(stat.can_sync_name),
        gap_count: stat.gaps.len() as u64,
        records: stat.records,
        record_bytes: stat.record_bytes,
        segments_made: stat.segments_made,
        staged_bytes: stat.staged_bytes,
        log_id: or_null(texts.log_id.as_deref()),
        epoch: stat.epoch,
        application_tag: stat.application_tag.unwrap_or(0),
        cursor_count: stat.cursors.len() as u64,
        cursors_fault: or_null(texts.cursors_fault.as_deref()),
        has_envelope: u64::from(stat.has_envelope),
        lost_from: stat.lost.map_or(0, |(from, _)| from.get()),
        lost_end: stat.lost.map_or(0, |(_, end)| end.get()),
    }
}

/// The outcome of the newest recovery, by any process.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vellum_stat_recovery(
    stat: Option<&vellum_stat>,
    recovery: *mut vellum_recovery,
) -> c_int {
    guard(|| {
        let stat = required(stat, "stat")?;
        // SAFETY: the caller's structure is as long as it says.
        let place = unsafe { Place::required(recovery, "recovery") }?;
        place.put(&vellum_recovery::of(stat.stat.last_recovery));
        Ok(VELLUM_OK)
    })
}

/// Counts of commits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vellum_stat_commits(
    stat: Option<&vellum_stat>,
    commits: *mut vellum_commits,
) -> c_int {
    guard(|| {
        let counts = &required(stat, "stat")?.stat.commits;
        // SAFETY: the caller's structure is as long as it says.
        let place = unsafe { Place::required(commits, "commits") }?;
        place.put(&vellum_commits {
            struct_size: 0,
            commits: counts.commits,
            syncs: counts.syncs,
            synced_bytes: counts.synced_bytes,
            sync_us: counts.sync_micros,
            sync_us_sum: counts.sync_micros_sum,
        });
        Ok(VELLUM_OK)
    })
}

/// The log's policy.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vellum_stat_policy(
    stat: Option<&vellum_stat>,
    policy: *mut vellum_policy,
) -> c_int {
    guard(|| {
        let stored = &required(stat, "stat")?.stat.policy;
        // SAFETY: the caller's structure is as long as it says.
        let place = unsafe { Place::required(policy, "policy") }?;
        let seconds = |span: Option<Duration>| span.map_or(0, |span| span.as_secs());
        place.put(&vellum_policy {
            struct_size: 0,
            rotate_bytes: stored.rotate_bytes.unwrap_or(0),
            rotate_every_s: seconds(stored.rotate_every),
            rotate_offset_s: stored.rotate_offset.as_secs(),
            retain_bytes: stored.retain_bytes.unwrap_or(0),
            retain_age_s: seconds(stored.retain_age),
            retain_files: stored.retain_files.unwrap_or(VELLUM_ALL_FILES),
            compress: match stored.compression {
                Compression::Gzip => VELLUM_COMPRESS_GZIP as u32,
                Compression::Zstd => VELLUM_COMPRESS_ON as u32,
                _ => VELLUM_COMPRESS_OFF as u32,
            },
            reserved: 0,
        });
        Ok(VELLUM_OK)
    })
}

/// Frees a vellum_stat and everything borrowed from it; NULL is fine.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_stat_free(stat: Option<Box<vellum_stat>>) {
    guard_or((), || {
        drop(stat);
        Ok(())
    });
}

fn or_null(text: Option<&CStr>) -> *const c_char {
    text.map_or(ptr::null(), CStr::as_ptr)
}

fn preallocate_number(preallocate: Preallocate) -> u32 {
    let number = match preallocate {
        Preallocate::Auto => VELLUM_PREALLOCATE_AUTO,
        Preallocate::Off => VELLUM_PREALLOCATE_OFF,
        Preallocate::Sparse => VELLUM_PREALLOCATE_SPARSE,
        Preallocate::Fallocate => VELLUM_PREALLOCATE_FALLOCATE,
        Preallocate::Zeros => VELLUM_PREALLOCATE_ZEROS,
        Preallocate::Recycle => VELLUM_PREALLOCATE_RECYCLE,
        _ => VELLUM_PREALLOCATE_DEFAULT,
    };
    number as u32
}

fn fill_number(fill: Fill) -> u32 {
    let number = match fill {
        Fill::Mapped => VELLUM_FILL_MAPPED,
        Fill::Pwrite => VELLUM_FILL_PWRITE,
        Fill::Staged => VELLUM_FILL_STAGED,
        _ => VELLUM_FILL_DEFAULT,
    };
    number as u32
}
