//! A shortage of one process (descriptors, a right, room under its own limits) is that process's
//! error: it holds up no other, and poisons nothing.

use std::os::fd::AsRawFd;
use std::path::Path;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use vellum::{Fill, Layout, Log, Lsn, Options, Tuning};

use crate::support::child::{self, Child};
use crate::support::{
    assert_sound, become_nobody, is_root, payload, payloads, place, scratch, until,
};

/// Every way to fill, with small segments.
fn kinds() -> [(&'static str, Options); 5] {
    let of = |layout, fill| {
        vellum::internal::options(layout)
            .tuning(Tuning::new().fill(fill).segment_capacity_bytes(16384))
    };
    [
        ("staged", of(Layout::Framed, Fill::Staged)),
        ("mapped", of(Layout::Framed, Fill::Mapped)),
        ("pwrite", of(Layout::Framed, Fill::Pwrite)),
        ("mapped text", of(Layout::Text, Fill::Mapped)),
        ("pwrite text", of(Layout::Text, Fill::Pwrite)),
    ]
}

/// Lowers a limit of this process, or gives it back.
fn limit(resource: Resource, value: Option<u64>) {
    let Rlimit { maximum, .. } = getrlimit(resource);
    setrlimit(resource, Rlimit { current: value.or(maximum), maximum }).unwrap();
}

/// No file can be opened any more; those that are open stay so.
fn without_descriptors<T>(act: impl FnOnce() -> T) -> T {
    limit(Resource::Nofile, Some(3));
    let answer = act();
    limit(Resource::Nofile, None);
    answer
}

fn record(log: &Log, seed: u64) -> Vec<u8> {
    payload(log.layout(), seed, 1000)
}

fn says(answer: &vellum::Result<Lsn>) {
    match answer {
        Ok(_) => child::say("done"),
        Err(error) => child::say(&format!("{:?} {:?}", error.kind(), error.raw_os_error())),
    }
}

/// Appends without descriptors until that fails; lives on, and appends again.
pub(crate) fn append_without_descriptors(arguments: &[String]) {
    let log = Options::default().open(&arguments[0]).unwrap();
    let record = record(&log, 1);
    log.append(&record).unwrap();
    without_descriptors(|| {
        let answer = (0..100).map(|_| log.append(&record)).find(Result::is_err);
        says(&answer.expect("a segment has to be opened"));
        child::hear();
    });
    log.append(&record).unwrap();
    child::say("appended");
    child::hear();
}

/// Commits what it appended without descriptors; lives on, and commits again.
pub(crate) fn commit_without_descriptors(arguments: &[String]) {
    let log = Options::default().open(&arguments[0]).unwrap();
    log.append(&record(&log, 1)).unwrap();
    without_descriptors(|| {
        says(&log.sync());
        child::hear();
    });
    says(&log.append_durable(&record(&log, 2)));
}

/// Has a committer commit with the one descriptor that its answer takes.
pub(crate) fn submit_without_descriptors(arguments: &[String]) {
    let log = Options::default().open(&arguments[0]).unwrap();
    let lsn = log.append(&record(&log, 1)).unwrap();
    let committer = log.committer().unwrap();
    let next = std::fs::File::open("/dev/null").unwrap().as_raw_fd() as u64;
    limit(Resource::Nofile, Some(next + 1));
    let completion = committer.submit(lsn).unwrap();
    let answer = until("there is an answer", || completion.outcome());
    let answer = answer.and_then(|()| completion.descriptor().map(|_| lsn));
    limit(Resource::Nofile, None);
    says(&answer);
}

/// Asks for an event for checkpoints without descriptors; then commits.
pub(crate) fn event_without_descriptors(arguments: &[String]) {
    let log = Options::wal()
        .exclusive(false)
        .tuning(Tuning::new().checkpoint_after_bytes(1))
        .open(&arguments[0])
        .unwrap();
    let event = without_descriptors(|| log.checkpoint().event());
    says(&event.map(|_| log.tail()));
    says(&log.append_durable(&record(&log, 1)));
    assert!(log.checkpoint().is_due() && log.checkpoint().event().unwrap().take().unwrap());
}

/// Commits, and lives on.
pub(crate) fn commit_once(arguments: &[String]) {
    let log = Options::default().open(&arguments[0]).unwrap();
    says(&log.append_durable(&record(&log, 3)));
    child::hear();
}

fn others_commit(log: &Path, case: &str) {
    let mut other = Child::start("commit once", &[log.to_str().unwrap()]);
    assert_eq!(other.hears().as_deref(), Some("done"), "{case}");
    other.finish_well();
}

#[test]
fn an_append_without_descriptors_reserves_nothing() {
    for (case, options) in kinds() {
        let dir = scratch();
        let log = options.open(place(&dir)).unwrap();
        log.append(&record(&log, 0)).unwrap();
        let path = place(&dir);
        let mut short = Child::start("append without descriptors", &[path.to_str().unwrap()]);
        let answer = short.hears().unwrap();
        assert_eq!(answer, format!("Io Some({})", libc::EMFILE), "{case}");
        assert_eq!(log.published(), log.tail(), "{case}: nothing is left reserved");
        others_commit(&path, case);
        short.tell("go on");
        short.expect("appended");
        short.finish_well();
        assert!(payloads(&log).contains(&record(&log, 3)), "{case}");
        assert_sound(&log);
    }
}

#[test]
fn a_commit_without_descriptors_fails_alone() {
    for (case, options) in kinds() {
        let dir = scratch();
        let log = options.open(place(&dir)).unwrap();
        log.append(&record(&log, 0)).unwrap();
        let path = place(&dir);
        let mut short = Child::start("commit without descriptors", &[path.to_str().unwrap()]);
        let answer = short.hears().unwrap();
        assert_eq!(answer, format!("Io Some({})", libc::EMFILE), "{case}");
        others_commit(&path, case);
        assert!(log.stat().unwrap().poison.is_none(), "{case}");
        let published = log.published();
        assert_eq!(log.sync().unwrap(), published, "{case}: the same records");
        short.tell("go on");
        short.expect("done");
        short.finish_well();
        log.append_durable(&record(&log, 4)).unwrap();
        assert_sound(&log);
    }
}

#[test]
fn a_committer_without_descriptors_says_so() {
    for (case, options) in kinds() {
        let dir = scratch();
        let log = options.open(place(&dir)).unwrap();
        log.append(&record(&log, 0)).unwrap();
        let path = place(&dir);
        let mut short = Child::start("submit without descriptors", &[path.to_str().unwrap()]);
        assert_eq!(short.hears(), Some(format!("Io Some({})", libc::EMFILE)), "{case}");
        short.finish_well();
        others_commit(&path, case);
    }
}

#[test]
fn an_event_for_checkpoints_without_descriptors_says_so() {
    let dir = scratch();
    let path = place(&dir);
    let mut short = Child::start("event without descriptors", &[path.to_str().unwrap()]);
    short.expect(&format!("Io Some({})", libc::EMFILE));
    short.expect("done");
    short.finish_well();
}

/// Appends and commits while its files must not grow; a signal would end it.
pub(crate) fn commit_under_a_size_limit(arguments: &[String]) {
    let log = Options::default().open(&arguments[0]).unwrap();
    if arguments[1] == "ignoring" {
        // SAFETY: ignoring a signal runs no code of ours.
        unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    }
    for room in [0, 4096] {
        limit(Resource::Fsize, Some(room));
        let answer = log.append(&record(&log, 1)).and_then(|lsn| log.commit(lsn).map(|()| lsn));
        limit(Resource::Fsize, None);
        says(&answer);
    }
    // An earlier commit is no reason to fail later: the segment is open by now.
    log.append_durable(&record(&log, 2)).unwrap();
    limit(Resource::Fsize, Some(4096));
    let answer = log.append_durable(&record(&log, 1));
    // A shell prints what follows into a file, which has its limit too.
    limit(Resource::Fsize, None);
    says(&answer);
    child::hear();
}

#[test]
fn a_commit_beyond_the_own_size_limit_is_an_error_and_others_make_it() {
    // Where records are written by system call, appending stops there.
    let [(_, options), ..] = kinds();
    for how in ["by default", "ignoring"] {
        let dir = scratch();
        let log = options.open(place(&dir)).unwrap();
        log.append_durable(&record(&log, 0)).unwrap();
        let path = place(&dir);
        let arguments = [path.to_str().unwrap(), how];
        let mut limited = Child::start("commit under a size limit", &arguments);
        for _ in 0..3 {
            let answer = limited.hears().unwrap_or_else(|| panic!("killed: {how}"));
            assert_eq!(answer, format!("NoSpace Some({})", libc::EFBIG), "{how}");
        }
        assert!(log.stat().unwrap().poison.is_none(), "{how}");
        let published = log.published();
        assert_eq!(log.sync().unwrap(), published, "the records of the other");
        limited.finish_well();
        log.append_durable(&record(&log, 3)).unwrap();
        assert_sound(&log);
    }
}

/// Does whatever can be done to a log under a limit of the size of files, and comes to the end.
pub(crate) fn do_everything_under_a_size_limit(arguments: &[String]) {
    let log = Options::default().open(&arguments[0]).unwrap();
    limit(Resource::Fsize, Some(arguments[1].parse().unwrap()));
    let record = record(&log, 5);
    let mut refused = 0;
    let mut note = |is_refused: bool| refused += usize::from(is_refused);
    for _ in 0..20 {
        note(log.append(&record).is_err());
    }
    note(log.append(&[b'x'; 200_000]).is_err());
    let mut batch = log.batch();
    batch.push(&record).unwrap();
    note(batch.append().is_err());
    drop(log.reserve(5000));
    note(log.sync().is_err());
    note(log.prepare(3).is_err());
    note(log.checkpoint().set(log.begin()).is_err());
    note(log.rotate().is_err());
    note(log.trim(log.published()).is_err());
    note(log.truncate(log.begin()).is_err());
    let path = Path::new(&arguments[0]);
    note(Options::default().retain_files(3).open(path).is_err());
    note(Options::default().open(path.with_extension("new")).is_err());
    drop(log);
    let log = Options::default().open(path);
    note(log.is_err());
    note(log.is_ok_and(|log| log.append_durable(&record).is_err()));
    limit(Resource::Fsize, None);
    child::say(if refused > 0 { "refused" } else { "nothing was refused" });
}

#[test]
fn no_limit_of_the_size_of_files_ends_a_process() {
    for (case, options) in kinds() {
        for limit in ["0", "8192"] {
            let dir = scratch();
            let log = options.open(place(&dir)).unwrap();
            let first = log.append_durable(&record(&log, 0)).unwrap();
            let path = place(&dir);
            let arguments = [path.to_str().unwrap(), limit];
            // Alone with the log, so that it truncates and recovers too.
            drop(log);
            let mut limited = Child::start("do everything under a size limit", &arguments);
            assert_eq!(limited.hears().as_deref(), Some("refused"), "{case}, {limit}");
            limited.finish_well();
            let log = options.open(place(&dir)).unwrap();
            assert!(log.begin() >= first, "{case}, {limit}");
            log.append_durable(&record(&log, 3)).unwrap();
            assert!(payloads(&log).contains(&record(&log, 3)), "{case}, {limit}");
            assert_sound(&log);
        }
    }
}

/// Creates a log as another user, and commits.
pub(crate) fn commit_as_nobody(arguments: &[String]) {
    become_nobody();
    for (case, options) in kinds() {
        let log = options.open(Path::new(&arguments[0]).join(case)).unwrap();
        says(&log.append_durable(&record(&log, 1)));
    }
}

#[test]
fn a_parent_that_cannot_be_read_is_no_reason_to_fail() {
    use std::os::unix::fs::PermissionsExt;
    if !is_root("a_parent_that_cannot_be_read") {
        return;
    }
    let dir = tempfile::tempdir_in("/tmp").unwrap();
    let mode = std::fs::Permissions::from_mode(0o733);
    std::fs::set_permissions(dir.path(), mode).unwrap();
    let mut other = Child::start("commit as nobody", &[dir.path().to_str().unwrap()]);
    for (case, _) in kinds() {
        assert_eq!(other.hears().as_deref(), Some("done"), "{case}");
    }
    other.finish_well();
}

#[test]
fn a_call_that_older_filters_do_not_know_is_not_made_under_a_filter() {
    const CACHESTAT: libc::c_long = 451;
    let file = tempfile::tempfile().unwrap();
    file.set_len(4 << 20).unwrap();
    // An error with the number 0 is success: nothing would be cached.
    let found = vellum_testing::kernel::where_it_fails(CACHESTAT, 0, || {
        format!("{:?}", vellum_sys::cache::Uncached::of(&file, u64::MAX))
    });
    assert!(found.contains("pieces: []"), "{found}");
}
