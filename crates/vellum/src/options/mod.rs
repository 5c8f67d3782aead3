//! The shape of a log and how a process uses it: [`Options`] and the choices it offers.

pub(crate) mod advice;
pub(crate) mod choice;
pub(crate) mod commit_path;
pub(crate) mod limits;
pub(crate) mod method;
pub(crate) mod policy;
mod text;
pub(crate) mod tuning;

use std::time::Duration;

use crate::Result;
use crate::options::choice::{Create, Fill, Layout, Preallocate};
use crate::options::limits::{check_prefault, check_segment_capacity, check_sparse, invalid};
use crate::options::policy::PolicyUpdate;
use crate::options::tuning::Tuning;

/// How to open a log: a builder. It begins with the kind of the log:
///
/// | kind | for | a record is |
/// |---|---|---|
/// | [`wal`](Options::wal) | a database or a queue that commits often | any bytes |
/// | [`events`](Options::events) | records at the speed of memory | any bytes |
/// | [`text`](Options::text) | log files for `grep`, `tail -F` and `less` | a line |
/// | [`mapped_text`](Options::mapped_text) | text at the speed of memory | a line |
///
/// [`Options::default`] takes the log that is there, of whatever kind, and creates one as
/// [`events`](Options::events) does where there is none.
///
/// What shapes the files is stored when the log is created, and stays. In [`Tuning`]
/// `segment_capacity_bytes`, `preallocate` and `fill` are for a new log: one that is there opens,
/// and keeps its own, which [`Log::stat`](crate::Log::stat) reports. Three options say which
/// records the program understands, and a log of others is refused with
/// [`InvalidOption`](crate::ErrorKind::InvalidOption): the kind, which asks for framed records or
/// for text and for nothing else, [`envelope`](Options::envelope), and
/// [`application_tag`](Options::application_tag). The other options belong to the process that
/// opens.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("app.log");
/// use vellum::Options;
///
/// let log = Options::text().rotate_bytes(50 << 20).retain_files(10).open(&path)?;
/// log.append(b"first line\n")?;
/// # Ok::<(), vellum::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Options {
    pub(crate) layout: Option<Layout>,
    /// How a new log of this kind is filled, if neither the program nor a file says otherwise.
    pub(crate) fill_of_kind: Option<Fill>,
    pub(crate) tuning: Tuning,
    pub(crate) mode: Option<u32>,
    pub(crate) create: Create,
    /// Does not make the file `lock` either, which another process may be removing.
    pub(crate) needs_lock: bool,
    pub(crate) read_only: bool,
    pub(crate) exclusive: bool,
    pub(crate) file_link: bool,
    /// Opens the log beside an exclusive owner, and appends nothing.
    pub(crate) is_companion: bool,
    pub(crate) policy: PolicyUpdate,
    pub(crate) timeout: Option<Duration>,
    pub(crate) application_tag: Option<u64>,
    pub(crate) envelope: Option<bool>,
}

impl Options {
    /// Options for a write-ahead log: framed and [`Fill::Staged`], with segments of 16 MiB that are
    /// written with zeros ahead of need and recycled when they are trimmed.
    ///
    /// Where a measurement advises another way to fill for such logs, that one is taken, unless
    /// [`Tuning::fill`] says which; an existing framed log is taken with the one it has. No other
    /// handle has the log open for writing ([`exclusive`](Options::exclusive)).
    pub fn wal() -> Options {
        Options::of(Layout::Framed, Some(Fill::Staged)).exclusive(true)
    }

    /// Options for a log of records at the speed of memory: framed and [`Fill::Mapped`] where
    /// mapping is safe, [`Fill::Pwrite`] elsewhere.
    pub fn events() -> Options {
        Options::of(Layout::Framed, None)
    }

    /// Options for a text log: plain files that every tool can read at any time, for each append is
    /// one [`pwrite`](Fill::Pwrite) of whole lines and the file holds nothing but text.
    pub fn text() -> Options {
        Options::of(Layout::Text, Some(Fill::Pwrite))
    }

    /// Options for a text log at the speed of memory: [`Fill::Mapped`] where mapping is safe.
    ///
    /// While a process has it open for writing, the newest file has NULs behind the text: `grep`
    /// takes it for binary, and `tail -F` may miss lines. They are cut off when the last process
    /// closes the log, and stay where it did not.
    pub fn mapped_text() -> Options {
        Options::of(Layout::Text, None)
    }

    /// Options for a log of this layout that is filled so.
    pub(crate) fn of(layout: Layout, fill: Option<Fill>) -> Options {
        Options { layout: Some(layout), fill_of_kind: fill, ..Options::default() }
    }

    /// How fast the log is, and how much memory and disk it uses. What `tuning` leaves out stays as
    /// it was said before.
    pub fn tuning(mut self, tuning: Tuning) -> Options {
        self.tuning = tuning.or(self.tuning);
        self
    }

    /// The application's mark of its records: any number but 0, such as the version of its
    /// encoding. Stored when the log is created, and shown by
    /// [`Stat::application_tag`](crate::stat::Stat::application_tag). Default: none.
    ///
    /// A log that was created with another tag, or with none, is refused with
    /// [`InvalidOption`](crate::ErrorKind::InvalidOption), and the text names both. Without it, the
    /// log is taken as it is. Costs nothing after opening.
    pub fn application_tag(mut self, tag: u64) -> Options {
        self.application_tag = Some(tag);
        self
    }

    /// Whether each record has an envelope: the time at which it was appended
    /// ([`Record::time`](crate::Record::time)), and its writer
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

    /// Permission bits of the files of a new log, before the umask. Default: `0o666`. Directories
    /// get the matching search bits; a user that may not write may not lock out users that may.
    ///
    /// A new log belongs to the owner of its directory, if that was there. A file that root or
    /// another user of the group makes later, with whatever umask, gets the owner, the group and
    /// the permission bits of the log, or the group of the directory where that hands it down
    /// (setgid). A process that may not give files away needs no more than the group, if that may
    /// write; otherwise an append that needs a new file is refused with
    /// [`PermissionDenied`](crate::ErrorKind::PermissionDenied).
    pub fn mode(mut self, mode: u32) -> Options {
        self.mode = Some(mode);
        self
    }

    /// Whether a log is made where there is none, and taken where there is one. Default:
    /// [`Create::IfMissing`].
    pub fn create(mut self, create: Create) -> Options {
        self.create = create;
        self
    }

    /// Whether to open for reading only, which needs no more than read permission. Default: no.
    pub fn read_only(mut self, read_only: bool) -> Options {
        self.read_only = read_only;
        self
    }

    /// Whether this is the only handle that has the log open for writing. Default: yes for
    /// [`wal`](Options::wal), no for others.
    ///
    /// A database keeps the contents of its log in the memory of one process. A second process that
    /// appended to the log would mix its records with the first one's, and neither would notice.
    /// With `exclusive` the second opener gets [`InUse`](crate::ErrorKind::InUse), which names the
    /// process of the first. So does an exclusive opener of a log that others have open for
    /// writing. It ends when the owner closes the log or dies. Readers come in at any time, and
    /// programs that ship ([`ship::open`](crate::ship::open)).
    ///
    /// Processes that append to one write-ahead log, and share the writes of its commits, open it
    /// with `exclusive(false)`. Threads share a [`Log`](crate::Log). A child that was forked by the
    /// owner gets the error at its first append while the owner lives. Of no effect for a reader.
    pub fn exclusive(mut self, exclusive: bool) -> Options {
        self.exclusive = exclusive;
        self
    }

    /// Whether the path is that of a file, as people and tools expect it of a text log. Default:
    /// no.
    ///
    /// A new log at `app.log` is then in the directory `app.log.d`, and `app.log` is a link to its
    /// newest file, through `current`; so `grep`, `less` and `tail -F` take `app.log`. A log that
    /// is there as a directory stays one, and a path that ends with `/` is that of a directory.
    /// Where the link was removed it is made again, within a second of appending; any other file in
    /// its place is refused, or stays. For text logs.
    ///
    /// Every opener takes the link for the name of the log, and the name of the link where it is
    /// gone, with or without this option.
    pub fn file_link(mut self, file_link: bool) -> Options {
        self.file_link = file_link;
        self
    }

    /// Whether a new log is to have a link.
    pub(crate) fn makes_link(&self) -> bool {
        self.file_link && self.layout == Some(Layout::Text)
    }

    /// Whether a log is made where there is none.
    pub(crate) fn may_create(&self) -> bool {
        self.create != Create::Never
    }

    /// How long this process's appends, commits and other calls on the open log wait for another
    /// process that holds a lock they need. Default: for as long as that process lives.
    ///
    /// The dead are not waited for, so only a process that is stopped, or does not get on,
    /// makes a call give up, with [`TimedOut`](crate::ErrorKind::TimedOut) and a text that names
    /// it. An append that gives up has reserved nothing; the record of a commit that gives up is in
    /// the log as before. The time is for each wait, of which a call rarely has more than one, and
    /// is checked every 10 ms. Reads and writes of the call itself have no limit, nor has the gate
    /// through which one process at a time opens or closes a log.
    pub fn timeout(mut self, timeout: Duration) -> Options {
        self.timeout = Some(timeout);
        self
    }

    /// Refuses values that are out of range, whatever the log holds.
    pub(crate) fn check(&self) -> Result<()> {
        if let Some(bytes) = self.tuning.segment_capacity_bytes {
            check_segment_capacity(bytes)?;
        }
        if let Some(bytes) = self.tuning.prefault_bytes {
            check_prefault(bytes)?;
        }
        if let Some(segments) = self.tuning.staged_segments_max.filter(|segments| *segments < 2) {
            return Err(invalid(format!(
                "\0staged_segments_max\0 is {segments}, and must be at least 2: the next segment is \
                 made ready before the last one is full"
            )));
        }
        self.tuning.commit_path.map_or(Ok(()), |path| path.check())?;
        if self.application_tag == Some(0) {
            return Err(invalid("\0application_tag\0 is 0, which stands for none; choose another"));
        }
        let shows =
            matches!(self.tuning.preallocate, Some(Preallocate::Recycle | Preallocate::Zeros));
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
        if self.layout == Some(Layout::Framed) && self.file_link {
            return Err(invalid(
                "no other program reads the files of a framed log, so a link to them has no use; \
                 leave out \0file_link\0",
            ));
        }
        check_sparse(self.tuning.preallocate, self.tuning.fill)?;
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

    /// The way to fill that the program asks for, by name or by the kind of the log.
    pub(crate) fn wanted_fill(&self) -> Option<Fill> {
        self.tuning.fill.or(self.fill_of_kind)
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
            Options::events().tuning(Tuning::new().segment_capacity_bytes(5000)),
            Options::events().tuning(Tuning::new().segment_capacity_bytes(0)),
            Options::events().tuning(Tuning::new().segment_capacity_bytes(2 << 30)),
            Options::events().tuning(Tuning::new().prefault_bytes(100)),
            Options::text().tuning(Tuning::new().preallocate(Preallocate::Recycle)),
            Options::text().tuning(Tuning::new().preallocate(Preallocate::Zeros)),
            Options::text().tuning(Tuning::new().fill(Fill::Staged)),
            Options::events()
                .tuning(Tuning::new().preallocate(Preallocate::Sparse).fill(Fill::Mapped)),
            Options::events().mode(0o444),
            Options::text().envelope(true),
            Options::events().file_link(true),
        ] {
            assert_eq!(options.check().unwrap_err().kind(), ErrorKind::InvalidOption);
        }
    }

    #[test]
    fn what_tuning_leaves_out_stays() {
        let options = Options::wal().tuning(Tuning::new().prefault_bytes(1 << 20));
        let options = options.tuning(Tuning::new().mapped_bytes_max(1 << 30).prefault_bytes(4096));
        let tuning = options.tuning;
        assert_eq!((tuning.prefault_bytes, tuning.mapped_bytes_max), (Some(4096), Some(1 << 30)));
    }
}
