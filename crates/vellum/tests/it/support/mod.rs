//! Helpers of the tests: scratch directories, payloads, reading everything, second processes.

pub(crate) mod crc;

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use vellum::{Fill, Layout, Log, Lsn, Options, Tuning};
pub(crate) use vellum_testing::{
    Numbers, Over, PATIENCE, child, fork, is_root, kernel, memory_scratch, mount, scratch, skip,
    until,
};

pub(crate) const LAYOUTS: [Layout; 2] = [Layout::Framed, Layout::Text];
pub(crate) const FILLS: [Fill; 2] = [Fill::Mapped, Fill::Pwrite];

/// A log's place in a scratch directory.
pub(crate) fn place(dir: &TempDir) -> PathBuf {
    dir.path().join("log")
}

/// Options of a small log whose records go through the mapping.
pub(crate) fn small(layout: Layout) -> Options {
    vellum::internal::options(layout)
        .tuning(Tuning::new().segment_capacity_bytes(4096).fill(Fill::Mapped))
}

/// Bytes that tell by themselves which record they are of; in a text log a line (of at least one
/// byte, its newline), without NUL, newline or tilde inside.
pub(crate) fn payload(layout: Layout, seed: u64, len: usize) -> Vec<u8> {
    let mut numbers = Numbers::new(seed + 1);
    let mut bytes: Vec<u8> = (0..len).map(|_| numbers.next() as u8).collect();
    if layout == Layout::Text {
        bytes.iter_mut().for_each(|byte| *byte = b'0' + *byte % 64);
        bytes.resize(len.max(1), 0);
        *bytes.last_mut().unwrap() = b'\n';
    }
    bytes
}

/// A record as it was read: its position and its bytes.
pub(crate) type Read = (Lsn, Vec<u8>);

/// Everything from `from` to the published end.
pub(crate) fn read_from(log: &Log, from: Lsn) -> vellum::Result<Vec<Read>> {
    let mut reader = log.reader(from)?;
    let mut all = Vec::new();
    while let Some(record) = reader.next()? {
        assert!(record.next_lsn > record.lsn, "a record has a length");
        all.push((record.lsn, record.payload.to_vec()));
    }
    Ok(all)
}

/// Everything from the beginning to the published end.
pub(crate) fn read_all(log: &Log) -> Vec<Read> {
    read_from(log, Lsn::ZERO).unwrap()
}

/// The payloads alone.
pub(crate) fn payloads(log: &Log) -> Vec<Vec<u8>> {
    read_all(log).into_iter().map(|(_, payload)| payload).collect()
}

/// Asserts that a log holds exactly `expected`, whole and in order, and verifies.
#[track_caller]
pub(crate) fn assert_holds(log: &Log, expected: &[Read]) {
    let found = read_all(log);
    let lsns = |reads: &[Read]| reads.iter().map(|read| read.0).collect::<Vec<_>>();
    assert_eq!(lsns(&found), lsns(expected), "positions");
    assert!(found == expected, "every record has the bytes that were appended");
    assert_sound(log);
}

/// Asserts that nothing is wrong with a log.
#[track_caller]
pub(crate) fn assert_sound(log: &Log) {
    let report = log.verify().unwrap();
    assert!(report.damage.is_empty(), "{:#?}", report.damage);
}

/// The segment files, oldest first.
pub(crate) fn segment_files(log: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(log).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> =
        entries.filter(|path| path.extension().is_some_and(|e| e == "seg" || e == "log")).collect();
    files.sort();
    files
}

/// What `cat LOG/*.log` prints, or `cat LOG/*.seg`.
pub(crate) fn concatenated(log: &Path) -> Vec<u8> {
    segment_files(log).iter().flat_map(|file| fs::read(file).unwrap()).collect()
}

/// Copies the files of an unused log.
pub(crate) fn copy_log(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        match fs::read_link(entry.path()) {
            Ok(target) => std::os::unix::fs::symlink(target, to.join(entry.file_name())).unwrap(),
            Err(_) => drop(fs::copy(entry.path(), to.join(entry.file_name())).unwrap()),
        }
    }
}

/// Makes the control file of a copied log take the copy for itself, so that its words count.
pub(crate) fn adopt_control(log: &Path) {
    adopt_control_as(log, &fs::metadata(log.join("control")).unwrap());
}

/// Makes the control file in `log` say that it is the file with this status.
pub(crate) fn adopt_control_as(log: &Path, place: &fs::Metadata) {
    use std::os::unix::fs::{FileExt, MetadataExt};
    let control = fs::File::options().write(true).open(log.join("control")).unwrap();
    control.write_all_at(&place.dev().to_le_bytes(), 128).unwrap();
    control.write_all_at(&place.ino().to_le_bytes(), 136).unwrap();
}

/// Takes an exclusive lock on one byte of a file, as Vellum does: it goes with the open file.
pub(crate) fn lock_byte(file: &fs::File, byte: i64) {
    use std::os::fd::AsRawFd;
    let request = libc::flock {
        l_type: libc::F_WRLCK as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: byte,
        l_len: 1,
        l_pid: 0,
    };
    // SAFETY: the descriptor is open, and the structure lives as long as the call.
    let answer = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLKW, &request) };
    assert_eq!(answer, 0, "the lock is free");
}

/// Makes a scratch directory and everything in it accessible to every user.
pub(crate) fn open_to_all(dir: &Path) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(dir, fs::Permissions::from_mode(0o777)).unwrap();
}

/// Makes this thread, of a child with nothing else to do, one of another user.
pub(crate) fn become_nobody() {
    become_user(65534, 65534, &[]);
}

/// As [`become_nobody`], with the groups `also` besides.
///
/// The library's own calls make every thread change its user in a signal handler, which may still
/// be on its way out, on a stack of its own, when the process ends: then it dies of `SIGSEGV`.
pub(crate) fn become_user(uid: u32, gid: u32, also: &[u32]) {
    // SAFETY: the calls read `also` alone, and change nothing but this thread's rights.
    unsafe {
        assert_eq!(libc::syscall(libc::SYS_setgroups, also.len(), also.as_ptr()), 0);
        assert_eq!(libc::syscall(libc::SYS_setresgid, gid, gid, gid), 0);
        assert_eq!(libc::syscall(libc::SYS_setresuid, uid, uid, uid), 0);
    }
}

/// Runs a test that forks in a process of its own: its children would hold on to the open files of
/// whatever other tests have open, and so be present in their logs.
pub(crate) fn in_own_process(test: impl FnOnce()) {
    const IN_OWN_PROCESS: &str = "VELLUM_TEST_IN_OWN_PROCESS";
    if std::env::var_os(IN_OWN_PROCESS).is_some() {
        return test();
    }
    let name = std::thread::current().name().expect("a test's thread has its name").to_owned();
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command.args([&*name, "--exact", "--nocapture"]).env(IN_OWN_PROCESS, "1");
    assert!(command.status().unwrap().success(), "{name}");
}

/// Bytes of blocks that the files of the log take, its control file among them.
pub(crate) fn taken(log: &Path) -> u64 {
    let files = fs::read_dir(log).unwrap().map(|entry| entry.unwrap().metadata().unwrap());
    files.map(|file| std::os::unix::fs::MetadataExt::blocks(&file) * 512).sum()
}
