//! The shape of a log, and how this process uses it.

use std::ffi::c_int;
use std::time::Duration;

use vellum::{Compression, Create, Fill, OnFull, OnStageFull, Options, Preallocate, Tuning};

use crate::boundary::{Failure, Outcome, guard};
use crate::growing::{self, Growing, Place};
use crate::status::vellum_status::VELLUM_OK;

/// For fields of vellum_options that belong to the log's policy: leave it as it is stored.
pub const VELLUM_KEEP: u64 = u64::MAX;
/// For vellum_options.retain_files: keep all closed files.
pub const VELLUM_ALL_FILES: u64 = u64::MAX - 1;
/// For vellum_options.spare_segments_max: a trim keeps no segment.
pub const VELLUM_NO_SPARES: u64 = u64::MAX;

/// For vellum_options.flags: fail with VELLUM_NOT_FOUND where there is no log yet.
pub const VELLUM_NO_CREATE: u32 = 1;
/// For vellum_options.flags: fail with VELLUM_ALREADY_EXISTS where there is one.
pub const VELLUM_CREATE_NEW: u32 = 2;
/// For vellum_options.flags: open for reading only, which needs no more than read permission.
pub const VELLUM_OPEN_READ_ONLY: u32 = 4;
/// For vellum_options.flags: follow no advice that was measured for a directory above the log.
pub const VELLUM_NO_ADVICE: u32 = 8;
/// For vellum_options.flags: each record of a new framed log has an envelope of 16 bytes, with the
/// time and the writer (vellum_reader_time, vellum_reader_writer). A log that was created without
/// is refused with VELLUM_INVALID_OPTION; without the flag, the log is taken as it is.
pub const VELLUM_ENVELOPE: u32 = 32;
/// For vellum_options.flags: no other handle may have the log open for writing, in this process or
/// another. The second opener gets VELLUM_IN_USE, and the text names the first; its close or death
/// ends that. Readers and vellum ship come in. VELLUM_KIND_WAL means it without this flag.
pub const VELLUM_EXCLUSIVE: u32 = 64;
/// For vellum_options.flags: several processes append to this write-ahead log, and share the writes
/// of its commits. The other kinds mean it without this flag.
pub const VELLUM_SHARED: u32 = 128;
/// For vellum_options.flags: the path of a new text log is that of a file. The log is then in the
/// directory PATH.d, and PATH is a link to its newest file, for grep, less and tail -F. A log that
/// is there as a directory stays one. Every opener takes the link for the name of the log, with or
/// without this flag.
pub const VELLUM_FILE_LINK: u32 = 256;

/// The purpose of a log. For vellum_options.kind.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum vellum_kind {
    /// The log that is there, of whatever kind; a new log is as VELLUM_KIND_EVENTS.
    VELLUM_KIND_DEFAULT = 0,
    /// A write-ahead log: framed and staged, so that vellum_commit costs one direct write of the
    /// device.
    VELLUM_KIND_WAL = 1,
    /// Records at the speed of memory: framed, and mapped where that is safe.
    VELLUM_KIND_EVENTS = 2,
    /// Plain text that every tool can read at any time: each append is one pwrite of whole lines.
    /// The caller brings the newline; a record is read back line by line.
    VELLUM_KIND_TEXT = 3,
    /// Text at the speed of memory. The newest file has NULs behind the text while a process has
    /// the log open for writing.
    VELLUM_KIND_MAPPED_TEXT = 4,
}

/// How records lie in the files. For vellum_summary.layout.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum vellum_layout {
    /// Each record in a frame with its length and checksum. Records are any bytes, and come back as
    /// they were appended.
    VELLUM_LAYOUT_FRAMED = 1,
    /// The caller's bytes and nothing else: plain files for grep, tail and log shippers.
    VELLUM_LAYOUT_TEXT = 2,
}

/// How file space is made ready ahead of need. For vellum_options.preallocate.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum vellum_preallocate {
    /// As the log has it; in a new log as VELLUM_PREALLOCATE_AUTO.
    VELLUM_PREALLOCATE_DEFAULT = 0,
    /// The method that suits the filesystem.
    VELLUM_PREALLOCATE_AUTO = 1,
    /// Not at all: the file grows with the log.
    VELLUM_PREALLOCATE_OFF = 2,
    /// The size of the whole file without its blocks; with VELLUM_FILL_PWRITE.
    VELLUM_PREALLOCATE_SPARSE = 3,
    /// Blocks by fallocate, in steps ahead of the records; of whole files where vellum_prepare asks
    /// for them, and in a staged log.
    VELLUM_PREALLOCATE_FALLOCATE = 4,
    /// The blocks of the whole file, written with zeros. Framed only.
    VELLUM_PREALLOCATE_ZEROS = 5,
    /// As FALLOCATE, and trimmed files are used again. Framed only.
    VELLUM_PREALLOCATE_RECYCLE = 6,
}

/// How records are written to the segment files. For vellum_options.fill.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum vellum_fill {
    /// As the log has it; in a new log MAPPED where that is safe, PWRITE elsewhere.
    VELLUM_FILL_DEFAULT = 0,
    /// Small records are stored through a shared mapping, long ones written by pwrite.
    VELLUM_FILL_MAPPED = 1,
    /// Every record is written by pwrite.
    VELLUM_FILL_PWRITE = 2,
    /// Records are stored into files beside the segments and reach the segments when they are
    /// committed. Framed only; uncommitted records survive every process, but no reboot.
    VELLUM_FILL_STAGED = 3,
}

/// Whether closed files of a text log are compressed. For vellum_options.compress.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum vellum_compress {
    /// As the log has it; in a new log not.
    VELLUM_COMPRESS_KEEP = 0,
    /// They stay as they are.
    VELLUM_COMPRESS_OFF = 1,
    /// With zstd, by the process that began a new file. Where the library is built with it.
    VELLUM_COMPRESS_ON = 2,
    /// With gzip, the same way, for zgrep, zless and scripts that know only that.
    VELLUM_COMPRESS_GZIP = 3,
}

/// The behaviour of an append on a full disk. For vellum_options.on_full.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum vellum_on_full {
    /// It returns VELLUM_NO_SPACE.
    VELLUM_ON_FULL_ERROR = 0,
    /// It waits until there is space again.
    VELLUM_ON_FULL_BLOCK = 1,
    /// It drops the record, counts it, and returns VELLUM_OK with position 0. Text logs only. Space
    /// is looked for 20 times a second by all processes together, so records are appended again 50
    /// ms after some was made.
    VELLUM_ON_FULL_DROP = 2,
}

/// The behaviour of an append when the stage is full: as many segments as may be hold records that
/// are not durable. For vellum_options.on_stage_full.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum vellum_on_stage_full {
    /// It commits what was appended before, and then appends.
    VELLUM_ON_STAGE_FULL_COMMIT = 0,
    /// It returns VELLUM_NO_SPACE; nothing was reserved.
    VELLUM_ON_STAGE_FULL_ERROR = 1,
}

/// How to open or create a log.
///
/// Fill it by vellum_options_init, then change what should be different. What shapes the files is
/// stored when the log is created: segment_capacity_bytes, preallocate, fill and mode are for a new
/// log, and one that is there keeps its own (vellum_summary). A log of another kind than the opener
/// asks for is VELLUM_INVALID_OPTION; 0 takes what is there. What says when a text log goes on in a
/// new file and which files it keeps (rotate_*, retain_*, compress) is stored too, but changes for
/// all processes when one opens the log with other values. The rest is about this process.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct vellum_options {
    /// sizeof(vellum_options), as vellum_options_init sets it.
    pub struct_size: usize,
    /// VELLUM_NO_CREATE, VELLUM_OPEN_READ_ONLY and so on, joined by |. Default: 0.
    pub flags: u32,
    /// Permission bits of a new log's files, before the umask. 0 is 0666.
    pub mode: u32,
    /// A vellum_kind. Default: VELLUM_KIND_DEFAULT.
    pub kind: u32,
    /// A vellum_preallocate. Default: VELLUM_PREALLOCATE_DEFAULT.
    pub preallocate: u32,
    /// A vellum_fill. Default: VELLUM_FILL_DEFAULT.
    pub fill: u32,
    /// A vellum_on_full. Default: VELLUM_ON_FULL_ERROR.
    pub on_full: u32,
    /// Bytes of log in a file: a multiple of the page size, 4 KiB to 1 GiB. 0 is 64 MiB for a new
    /// log, 16 MiB where records are staged.
    pub segment_capacity_bytes: u64,
    /// How far ahead of the tail this process makes pages ready, in bytes: a multiple of the page
    /// size. 0 is 1 MiB.
    pub prefault_bytes: u64,
    /// Address space that this process may use for mapped files, in bytes. 0 is 256 MiB.
    pub mapped_bytes_max: u64,
    /// Bytes after which a text log continues in a new file; 0 is never. Default: VELLUM_KEEP.
    pub rotate_bytes: u64,
    /// Seconds after which it does, counted from 1970-01-01 00:00 UTC: 86400 is midnight UTC; 0 is
    /// never. Default: VELLUM_KEEP.
    pub rotate_every_s: u64,
    /// Seconds by which those moments are moved. Default: VELLUM_KEEP.
    pub rotate_offset_s: u64,
    /// Bytes that the files may take together; 0 is no limit. For framed logs too: whole segments
    /// go, and nothing from the checkpoint on. Default: VELLUM_KEEP.
    pub retain_bytes: u64,
    /// Seconds for which a closed file is kept; 0 is for ever. For framed logs too. Default:
    /// VELLUM_KEEP.
    pub retain_age_s: u64,
    /// Closed files that are kept; VELLUM_ALL_FILES is no limit. Default: VELLUM_KEEP.
    pub retain_files: u64,
    /// A vellum_compress. Default: VELLUM_COMPRESS_KEEP.
    pub compress: u32,
    /// A vellum_on_stage_full. Default: VELLUM_ON_STAGE_FULL_COMMIT.
    pub on_stage_full: u32,
    /// How long this process's appends, commits and other calls on the open log wait for another
    /// process that is stopped or does not get on, in microseconds: then they return
    /// VELLUM_TIMED_OUT, and have changed nothing. 0 is for as long as that process lives.
    pub timeout_us: u64,
    /// Segments of a staged log that may hold records which are not durable; at least 2. 0 is 3.
    pub staged_segments_max: u64,
    /// Segments that may wait for new records behind a trim, or a removal by the policy: those that
    /// are ready already, and those that are kept of the removed ones. With VELLUM_NO_SPARES all
    /// removed ones are given back to the disk, also while the log ships. 0, and the most, is 8 in
    /// a staged log.
    pub spare_segments_max: u64,
    /// Bytes of log behind the checkpoint after which the next one is due: vellum_checkpoint_due. 0
    /// is never.
    pub checkpoint_after_bytes: u64,
    /// The application's mark of its records, such as the version of their encoding: stored when
    /// the log is created. A log that was created with another one, or with none, is refused with
    /// VELLUM_INVALID_OPTION. 0 takes the log as it is.
    pub application_tag: u64,
}

// SAFETY: repr(C), size first, numbers only; words and pairs of half words.
unsafe impl Growing for vellum_options {}

impl vellum_options {
    const DEFAULT: vellum_options = vellum_options {
        struct_size: size_of::<vellum_options>(),
        flags: 0,
        mode: 0,
        kind: 0,
        preallocate: 0,
        fill: 0,
        on_full: 0,
        segment_capacity_bytes: 0,
        prefault_bytes: 0,
        mapped_bytes_max: 0,
        rotate_bytes: VELLUM_KEEP,
        rotate_every_s: VELLUM_KEEP,
        rotate_offset_s: VELLUM_KEEP,
        retain_bytes: VELLUM_KEEP,
        retain_age_s: VELLUM_KEEP,
        retain_files: VELLUM_KEEP,
        compress: 0,
        on_stage_full: 0,
        timeout_us: 0,
        staged_segments_max: 0,
        spare_segments_max: 0,
        checkpoint_after_bytes: 0,
        application_tag: 0,
    };
}

/// Fills `options` with the defaults: vellum_options_init(&options, sizeof options).
///
/// `struct_size` is the size in the caller's header; the library may know more fields or fewer.
/// Returns VELLUM_INVALID_ARGUMENT for NULL and for a size that no version has.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vellum_options_init(
    options: *mut vellum_options,
    struct_size: usize,
) -> c_int {
    guard(|| {
        // SAFETY: the caller says that there are so many bytes.
        let place = unsafe { Place::raw(options, struct_size, "options") }?;
        place.put(&vellum_options::DEFAULT);
        Ok(VELLUM_OK)
    })
}

/// The options of the caller; NULL is the defaults.
///
/// # Safety
///
/// `options` is NULL, or as long as its `struct_size` says.
pub(crate) unsafe fn read(options: *const vellum_options) -> Outcome<Options> {
    // SAFETY: the caller's promise.
    let asked = unsafe { growing::read(options, vellum_options::DEFAULT) }?;
    check_flags(&asked)?;
    let base = match asked.kind {
        0 => Options::default(),
        1 => Options::wal(),
        2 => Options::events(),
        3 => Options::text(),
        4 => Options::mapped_text(),
        other => return Err(unknown("kind", other)),
    };
    let with_process = process(base, &asked)?;
    let with_shape = shape(with_process, &asked)?;
    policy(with_shape, &asked)
}

fn check_flags(asked: &vellum_options) -> Outcome<()> {
    const KNOWN: u32 = VELLUM_NO_CREATE
        | VELLUM_CREATE_NEW
        | VELLUM_OPEN_READ_ONLY
        | VELLUM_NO_ADVICE
        | VELLUM_ENVELOPE
        | VELLUM_EXCLUSIVE
        | VELLUM_SHARED
        | VELLUM_FILE_LINK;
    let says_both = VELLUM_EXCLUSIVE | VELLUM_SHARED;
    if asked.flags & says_both == says_both {
        return Err(unknown("flags", asked.flags));
    }
    if asked.flags & !KNOWN == 0 {
        return Ok(());
    }
    Err(unknown("flags", asked.flags))
}

/// Options of this process, and of finding the log.
fn process(options: Options, asked: &vellum_options) -> Outcome<Options> {
    let has = |flag| asked.flags & flag != 0;
    let mut options = options
        .create(match (has(VELLUM_CREATE_NEW), has(VELLUM_NO_CREATE)) {
            (true, _) => Create::New,
            (false, true) => Create::Never,
            (false, false) => Create::IfMissing,
        })
        .read_only(has(VELLUM_OPEN_READ_ONLY))
        .tuning(Tuning::new().on_full(match asked.on_full {
            0 => OnFull::Error,
            1 => OnFull::Block,
            2 => OnFull::Drop,
            other => return Err(unknown("on_full", other)),
        }));
    options = options.file_link(has(VELLUM_FILE_LINK));
    if has(VELLUM_EXCLUSIVE) || has(VELLUM_SHARED) {
        options = options.exclusive(has(VELLUM_EXCLUSIVE));
    }
    if !has(VELLUM_NO_ADVICE) {
        options = options.tuning(Tuning::new().advice_from(vellum_advice::nearest));
    }
    if has(VELLUM_ENVELOPE) {
        options = options.envelope(true);
    }
    options = options.tuning(Tuning::new().on_stage_full(match asked.on_stage_full {
        0 => OnStageFull::Commit,
        1 => OnStageFull::Error,
        other => return Err(unknown("on_stage_full", other)),
    }));
    if asked.staged_segments_max != 0 {
        options = options.tuning(Tuning::new().staged_segments_max(asked.staged_segments_max));
    }
    if asked.spare_segments_max != 0 {
        let most = asked.spare_segments_max;
        let most = if most == VELLUM_NO_SPARES { 0 } else { most };
        options = options.tuning(Tuning::new().spare_segments_max(most));
    }
    if asked.checkpoint_after_bytes != 0 {
        options =
            options.tuning(Tuning::new().checkpoint_after_bytes(asked.checkpoint_after_bytes));
    }
    if asked.mode != 0 {
        options = options.mode(asked.mode);
    }
    if asked.prefault_bytes != 0 {
        options = options.tuning(Tuning::new().prefault_bytes(asked.prefault_bytes));
    }
    if asked.mapped_bytes_max != 0 {
        options = options.tuning(Tuning::new().mapped_bytes_max(asked.mapped_bytes_max));
    }
    if asked.timeout_us != 0 {
        options = options.timeout(Duration::from_micros(asked.timeout_us));
    }
    Ok(options)
}

/// Sets the options that shape the files.
fn shape(mut options: Options, asked: &vellum_options) -> Outcome<Options> {
    const FILLS: [Fill; 3] = [Fill::Mapped, Fill::Pwrite, Fill::Staged];
    if let Some(preallocate) = choice(&PREALLOCATES, asked.preallocate, "preallocate")? {
        options = options.tuning(Tuning::new().preallocate(preallocate));
    }
    if let Some(fill) = choice(&FILLS, asked.fill, "fill")? {
        options = options.tuning(Tuning::new().fill(fill));
    }
    if asked.application_tag != 0 {
        options = options.application_tag(asked.application_tag);
    }
    if asked.segment_capacity_bytes != 0 {
        options =
            options.tuning(Tuning::new().segment_capacity_bytes(asked.segment_capacity_bytes));
    }
    Ok(options)
}

const PREALLOCATES: [Preallocate; 6] = [
    Preallocate::Auto,
    Preallocate::Off,
    Preallocate::Sparse,
    Preallocate::Fallocate,
    Preallocate::Zeros,
    Preallocate::Recycle,
];

/// Options that are stored as the log's policy.
fn policy(mut options: Options, asked: &vellum_options) -> Outcome<Options> {
    let wish = |value: u64| (value != VELLUM_KEEP).then_some(value);
    let span = |value: u64| wish(value).map(Duration::from_secs);
    if let Some(bytes) = wish(asked.rotate_bytes) {
        options = options.rotate_bytes(bytes);
    }
    if let Some(period) = span(asked.rotate_every_s) {
        options = options.rotate_every(period);
    }
    if let Some(offset) = span(asked.rotate_offset_s) {
        options = options.rotate_offset(offset);
    }
    if let Some(bytes) = wish(asked.retain_bytes) {
        options = options.retain_bytes(bytes);
    }
    if let Some(age) = span(asked.retain_age_s) {
        options = options.retain_age(age);
    }
    if let Some(count) = wish(asked.retain_files) {
        options = options.retain_files(if count == VELLUM_ALL_FILES { u64::MAX } else { count });
    }
    let compressions = [Compression::None, Compression::Zstd, Compression::Gzip];
    if let Some(compression) = choice(&compressions, asked.compress, "compress")? {
        options = options.compress(compression);
    }
    Ok(options)
}

/// The choice of `number`, counted from 1; 0 is none.
fn choice<T: Copy>(choices: &[T], number: u32, field: &str) -> Outcome<Option<T>> {
    match number.checked_sub(1).map(|index| choices.get(index as usize)) {
        None => Ok(None),
        Some(Some(choice)) => Ok(Some(*choice)),
        Some(None) => Err(unknown(field, number)),
    }
}

fn unknown(field: &str, number: u32) -> Failure {
    Failure::argument(&format!(
        "{number} means nothing in the options' {field}; fill the options by vellum_options_init \
         and use the constants of the header"
    ))
}
