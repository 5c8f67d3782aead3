//! What a log is made of and how a process uses it: [`Options`] and the choices it offers.

pub(crate) mod advice;
pub(crate) mod choice;
pub(crate) mod commit_path;
pub(crate) mod limits;
pub(crate) mod method;
pub(crate) mod policy;
mod text;

use std::time::Duration;

use crate::Result;
use crate::options::advice::AdviceSource;
use crate::options::choice::{Fill, Layout, OnStageFull, Preallocate};
use crate::options::commit_path::CommitPath;
use crate::options::limits::{check_prefault, check_segment_capacity, check_sparse, invalid};
use crate::options::policy::{OnFull, PolicyUpdate};

/// How to open a log: a builder.
///
/// What the program leaves open when it creates a log is taken from what was measured, if the
/// program says where to find that ([`advice_from`](Options::advice_from)), and else from what is
/// known of the filesystem.
///
/// What shapes the files ([`layout`](Options::layout),
/// [`segment_capacity_bytes`](Options::segment_capacity_bytes),
/// [`preallocate`](Options::preallocate), [`fill`](Options::fill), [`envelope`](Options::envelope))
/// is stored when the log is created, and what is stored wins: an opener that leaves these alone
/// takes what is there, one that asks for something else gets
/// [`InvalidOption`](crate::ErrorKind::InvalidOption). The other options belong to the process that
/// opens.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("app.log");
/// use vellum::{Layout, Options};
///
/// let log = Options::new().layout(Layout::Text).open(&path)?;
/// log.append(b"first line\n")?;
/// # Ok::<(), vellum::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Options {
    pub(crate) layout: Option<Layout>,
    pub(crate) segment_capacity_bytes: Option<u64>,
    pub(crate) preallocate: Option<Preallocate>,
    pub(crate) fill: Option<Fill>,
    /// Whether records are to be staged, if neither the program nor a file says otherwise.
    pub(crate) is_wal: bool,
    pub(crate) prefault_bytes: Option<u64>,
    pub(crate) mapped_bytes_max: Option<u64>,
    pub(crate) mode: Option<u32>,
    pub(crate) never_create: bool,
    /// Does not make the file `lock` either, which somebody may be removing.
    pub(crate) needs_lock: bool,
    pub(crate) create_new: bool,
    pub(crate) read_only: bool,
    pub(crate) advice_from: Option<AdviceSource>,
    pub(crate) policy: PolicyUpdate,
    pub(crate) on_full: OnFull,
    pub(crate) timeout: Option<Duration>,
    pub(crate) staged_segments_max: Option<u64>,
    pub(crate) on_stage_full: OnStageFull,
    pub(crate) checkpoint_after_bytes: Option<u64>,
    pub(crate) application_tag: Option<u64>,
    pub(crate) envelope: Option<bool>,
    pub(crate) commit_path: Option<CommitPath>,
}

impl Options {
    /// Options that take an existing log as it is, or create a framed one.
    pub fn new() -> Options {
        Options::default()
    }

    /// Options for a write-ahead log: framed and [`Fill::Staged`], with segments of 16 MiB that are
    /// written with zeros ahead of need and recycled when they are trimmed.
    ///
    /// Where a measurement advises another way to fill for such logs, that one is taken, unless
    /// [`fill`](Options::fill) says which; an existing framed log is taken with the one it has.
    pub fn wal() -> Options {
        Options { is_wal: true, ..Options::new().layout(Layout::Framed) }
    }

    /// How records lie in the segments. Default for a new log: [`Layout::Framed`].
    pub fn layout(mut self, layout: Layout) -> Options {
        self.layout = Some(layout);
        self
    }

    /// Bytes of log a segment file holds: a multiple of the page size from 4 KiB to 1 GiB. Default
    /// for a new log: 64 MiB, or 16 MiB where records are staged.
    pub fn segment_capacity_bytes(mut self, bytes: u64) -> Options {
        self.segment_capacity_bytes = Some(bytes);
        self
    }

    /// How file space is made ready ahead of need. Default: [`Preallocate::Auto`].
    pub fn preallocate(mut self, preallocate: Preallocate) -> Options {
        self.preallocate = Some(preallocate);
        self
    }

    /// How records are written to the segment files. Default for a new log: [`Fill::Mapped`] where
    /// mapping is safe, [`Fill::Pwrite`] on filesystems where it is not.
    pub fn fill(mut self, fill: Fill) -> Options {
        self.fill = Some(fill);
        self
    }

    /// How far ahead of the tail this process makes pages ready, in bytes: a multiple of 4096, at
    /// least one page. Default: 1 MiB, or a segment where that is less. In a framed log, space
    /// further ahead is made ready for long records: 256 of them, up to 16 MiB.
    ///
    /// Of a text log this is the most, because other tools see what is ready as NULs behind the
    /// text: it starts with 16 KiB, and doubles while that lasts for less than a millisecond. So a
    /// mapped text log that is written slowly has 32 KiB of them at most, and none once it is
    /// closed; one that is filled by [`Fill::Pwrite`] has none.
    pub fn prefault_bytes(mut self, bytes: u64) -> Options {
        self.prefault_bytes = Some(bytes);
        self
    }

    /// Address space this process may use for mapped segments, in bytes. Default: 256 MiB. At
    /// least one segment is always mapped, and one more for each append in progress at the same
    /// moment; the log's length plays no part.
    pub fn mapped_bytes_max(mut self, bytes: u64) -> Options {
        self.mapped_bytes_max = Some(bytes);
        self
    }

    /// Segments that may hold records which are not durable, in a [staged](Fill::Staged) log.
    /// Default: 3, at least 2. The append that needs one more commits first, or gets the error that
    /// [`on_stage_full`](Options::on_stage_full) chooses.
    ///
    /// What nobody can commit yet, because somebody is in the middle of an append before it, does
    /// not count, nor does the room that a commit needs for itself. Belongs to this process: each
    /// keeps to its own limit.
    pub fn staged_segments_max(mut self, segments: u64) -> Options {
        self.staged_segments_max = Some(segments);
        self
    }

    /// What an append does when [`staged_segments_max`](Options::staged_segments_max) segments hold
    /// records that are not durable. Default: [`OnStageFull::Commit`].
    pub fn on_stage_full(mut self, answer: OnStageFull) -> Options {
        self.on_stage_full = answer;
        self
    }

    /// Bytes of log behind the checkpoint after which the next one is
    /// [due](crate::Checkpoint::is_due). 0 is never, the default.
    ///
    /// The log makes no checkpoint by itself: only its user knows what to keep. It says when it is
    /// time ([`Checkpoint::is_due`](crate::Checkpoint::is_due),
    /// [`Checkpoint::event`](crate::Checkpoint::event)), so that neither the recovery nor
    /// the log grows without limit. Counted from where the checkpoint lies, in bytes of log with
    /// headers and padding, whoever wrote them. Belongs to this process. A text log has no
    /// checkpoint, and nothing is ever due in it.
    pub fn checkpoint_after_bytes(mut self, bytes: u64) -> Options {
        self.checkpoint_after_bytes = Some(bytes);
        self
    }

    /// What the application says that its records are: any number but 0, such as the version of its
    /// encoding. Stored when the log is created, and shown by
    /// [`Stat::application_tag`](crate::stat::Stat::application_tag). Default: none.
    ///
    /// A log that was created with another tag, or with none, is refused with
    /// [`InvalidOption`](crate::ErrorKind::InvalidOption), and the text names both. Who leaves it
    /// out takes the log as it is. Costs nothing after opening.
    pub fn application_tag(mut self, tag: u64) -> Options {
        self.application_tag = Some(tag);
        self
    }

    /// Whether each record has an envelope: the time at which it was appended
    /// ([`Record::time`](crate::Record::time)), and who appended it
    /// ([`Record::writer`](crate::Record::writer)). For framed logs; stored when the log is
    /// created, and the same for its whole life. Default for a new log: no.
    ///
    /// With it, records are found by their time
    /// ([`Log::reader_at_time`](crate::Log::reader_at_time)). A record may have up to 4 GiB − 17
    /// bytes. A library of an earlier version refuses to open such a log.
    ///
    /// # Cost
    ///
    /// 16 bytes for each record. For each append a look at the clock, and a second piece to copy:
    /// about 60 ns. The clock is no system call where the kernel maps it into processes (on some
    /// virtual machines it does not). A log without pays one comparison.
    pub fn envelope(mut self, envelope: bool) -> Options {
        self.envelope = Some(envelope);
        self
    }

    /// How this process brings commit groups to the device, in a [staged](Fill::Staged) log.
    /// Default: what was stored for this device
    /// ([`CommitPath::store_chosen`](crate::CommitPath::store_chosen)), and else what is known of
    /// it.
    ///
    /// # Durability
    ///
    /// A block that is smaller than the device's physical sector makes the device read, change and
    /// write the sector. A power cut in the middle may destroy durable records beside those that
    /// are written. The default never does that; this does what it is told. A block that the
    /// filesystem does not take is made larger.
    pub fn commit_path(mut self, path: CommitPath) -> Options {
        self.commit_path = Some(path);
        self
    }

    /// Permission bits of the files of a new log, before the umask. Default: `0o666`. Directories
    /// get the matching search bits; who may not write may not lock out those who may.
    ///
    /// A new log belongs to the owner of its directory, if that was there. Whoever makes a file of
    /// it later, root or another user of the group, and with whatever umask: the file gets the
    /// owner, the group and the permission bits of the log, or the group of the directory where
    /// that hands it down (setgid). Who may not give files away needs no more than the group, if
    /// that may write; otherwise an append that needs a new file is refused with
    /// [`PermissionDenied`](crate::ErrorKind::PermissionDenied).
    pub fn mode(mut self, mode: u32) -> Options {
        self.mode = Some(mode);
        self
    }

    /// Whether to create the log when there is none. Default: yes.
    pub fn create(mut self, create: bool) -> Options {
        self.never_create = !create;
        self
    }

    /// Whether there must not be a log yet. Default: no.
    pub fn create_new(mut self, create_new: bool) -> Options {
        self.create_new = create_new;
        self
    }

    /// Whether to open for reading only, which needs no more than read permission. Default: no.
    pub fn read_only(mut self, read_only: bool) -> Options {
        self.read_only = read_only;
        self
    }

    /// Whether a log is made where there is none.
    pub(crate) fn may_create(&self) -> bool {
        !self.never_create || self.create_new
    }

    /// Where to find what was measured for the directory of a new log. Default: nowhere.
    ///
    /// `source` is asked when a log is created, with the path of its directory, which need not
    /// exist; that of the crate `vellum-advice` finds the nearest `vellum.toml` above:
    /// `Options::new().advice_from(vellum_advice::nearest)`. Its error is that of opening.
    ///
    /// The advice is taken whole: its `wal` for a log that would be staged, its `log` for any
    /// other. It fills in what the program did not say. A value that does not go with what the
    /// program says is passed over, such as recycled files for a text log; and so is
    /// [`Fill::Mapped`] on a filesystem where mapping is not safe. A log that exists is never
    /// changed, and the source is not asked.
    pub fn advice_from(mut self, source: AdviceSource) -> Options {
        self.advice_from = Some(source);
        self
    }

    /// How long this process's appends, commits and other calls on the open log wait for another
    /// process that holds what they need. Default: for as long as that process lives.
    ///
    /// Whoever is dead is not waited for, so only a process that is stopped, or does not get on,
    /// makes a call give up, with [`TimedOut`](crate::ErrorKind::TimedOut) and a text that names
    /// it. An append that gives up has reserved nothing; what a commit that gives up was to make
    /// durable is in the log as before. The time is for each wait, of which a call rarely has more
    /// than one, and is looked at every 10 ms. What a call reads and writes itself has no limit,
    /// nor has the gate through which one process at a time opens or closes a log.
    pub fn timeout(mut self, timeout: Duration) -> Options {
        self.timeout = Some(timeout);
        self
    }

    /// Refuses values that are out of range, whatever the log holds.
    pub(crate) fn check(&self) -> Result<()> {
        if let Some(bytes) = self.segment_capacity_bytes {
            check_segment_capacity(bytes)?;
        }
        if let Some(bytes) = self.prefault_bytes {
            check_prefault(bytes)?;
        }
        if let Some(segments) = self.staged_segments_max.filter(|segments| *segments < 2) {
            return Err(invalid(format!(
                "\0staged_segments_max\0 is {segments}, and must be at least 2: the next segment is \
                 made ready before the last one is full"
            )));
        }
        self.commit_path.map_or(Ok(()), |path| path.check())?;
        if self.application_tag == Some(0) {
            return Err(invalid("\0application_tag\0 is 0, which stands for none; choose another"));
        }
        let shows = matches!(self.preallocate, Some(Preallocate::Recycle | Preallocate::Zeros));
        if self.layout == Some(Layout::Text) && shows {
            return Err(invalid(
                "the files of a text log hold nothing but text, so they can be neither recycled \
                 nor written with zeros; choose \0preallocate\0 fallocate",
            ));
        }
        if self.layout == Some(Layout::Text) && self.wanted_fill() == Some(Fill::Staged) {
            return Err(invalid(
                "the lines of a text log go straight to its files, so they cannot be staged; \
                 choose \0fill\0 mapped",
            ));
        }
        if self.layout == Some(Layout::Text) && self.envelope == Some(true) {
            return Err(invalid(
                "the files of a text log hold nothing but text, so its lines have no envelopes; \
                 choose \0layout\0 framed, or leave out \0envelope\0",
            ));
        }
        check_sparse(self.preallocate, self.fill)?;
        self.policy.check()?;
        if let Some(mode) = self.mode
            && (mode & !0o777 != 0 || mode & 0o600 != 0o600)
        {
            return Err(invalid(format!(
                "\0mode\0 {mode:o} is not made of permission bits that let the owner read and write"
            )));
        }
        Ok(())
    }

    /// The way to fill that the program asks for, by name or by asking for a write-ahead log.
    pub(crate) fn wanted_fill(&self) -> Option<Fill> {
        self.fill.or(self.is_wal.then_some(Fill::Staged))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    #[test]
    fn names_of_the_choices_go_both_ways() {
        for name in ["auto", "off", "sparse", "fallocate", "zeros", "recycle"] {
            assert_eq!(name.parse::<Preallocate>().unwrap().to_string(), name);
        }
        let error = "mmap".parse::<Preallocate>().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidOption);
        assert!(error.to_string().contains("fallocate"), "{error}");
    }

    #[test]
    fn values_out_of_range_are_refused_with_what_would_be_right() {
        for options in [
            Options::new().segment_capacity_bytes(5000),
            Options::new().segment_capacity_bytes(0),
            Options::new().segment_capacity_bytes(2 << 30),
            Options::new().prefault_bytes(100),
            Options::new().layout(Layout::Text).preallocate(Preallocate::Recycle),
            Options::new().layout(Layout::Text).preallocate(Preallocate::Zeros),
            Options::new().preallocate(Preallocate::Sparse).fill(Fill::Mapped),
            Options::new().mode(0o444),
            Options::new().layout(Layout::Text).envelope(true),
        ] {
            assert_eq!(options.check().unwrap_err().kind(), ErrorKind::InvalidOption);
        }
    }
}
