//! Whose files are that several users make of one log. Needs root, to become other users in second
//! processes.

use std::ffi::CString;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;
use vellum::{Create, ErrorKind, Fill, Layout, Log, Options, Tuning};
use vellum_testing::kernel::where_it_fails;

use crate::support::child::{self, Child};
use crate::support::{assert_sound, become_user, is_root, payloads, place, small};

const SERVICE: u32 = 12345;
const OTHER: u32 = 12346;
const GROUP: u32 = 23456;

/// A user, in the arguments of a role.
#[derive(Clone, Copy)]
struct User {
    uid: u32,
    gid: u32,
    /// A further group, or the same again.
    also: u32,
    umask: u32,
}

const fn user(id: u32) -> User {
    User { uid: id, gid: id, also: id, umask: 0o022 }
}

/// The kinds of logs, and their options.
const SHAPES: [(Layout, &str); 3] =
    [(Layout::Framed, "create"), (Layout::Framed, "create staged"), (Layout::Text, "create")];

/// Becomes a user and does something with a log.
pub(crate) fn act_as_user(arguments: &[String]) {
    let number = |index: usize| arguments[index].parse::<u32>().unwrap();
    let (uid, gid, also, umask) = (number(0), number(1), number(2), number(3));
    become_user(uid, gid, &[also]);
    // SAFETY: takes no memory.
    unsafe { libc::umask(umask) };
    let (path, act) = (Path::new(&arguments[4]), arguments[5].as_str());
    let layout = if arguments[6] == "text" { Layout::Text } else { Layout::Framed };
    let mode = u32::from_str_radix(&arguments[7], 8).unwrap();
    let options = match act {
        "create" => small(layout).mode(mode).create(Create::New),
        "create staged" => {
            small(layout).tuning(Tuning::new().fill(Fill::Staged)).mode(mode).create(Create::New)
        }
        _ => vellum::internal::options(layout),
    };
    child::say(&match options.open(path).and_then(|log| make_files(&log)) {
        Ok(()) => "done".to_string(),
        Err(error) => format!("{:?}: {error}", error.kind()),
    });
}

/// Has a log make files of all sorts.
fn make_files(log: &Log) -> vellum::Result<()> {
    log.prepare(2)?;
    for _ in 0..5 {
        log.append(&[&[b'x'; 3000][..], b"\n"].concat())?;
    }
    log.sync()?;
    if log.layout() == Layout::Text {
        log.rotate()?;
        log.append(b"in a new file\n")?;
    }
    let last = log.append(b"last\n")?;
    log.trim(last)?;
    Ok(())
}

fn act(user: User, path: &Path, act: &str, layout: Layout, mode: u32) -> String {
    let User { uid, gid, also, umask } = user;
    let [uid, gid, also, umask] = [uid, gid, also, umask].map(|number| number.to_string());
    let (path, layout, mode) = (path.to_str().unwrap(), layout.to_string(), format!("{mode:o}"));
    let arguments = [&uid, &gid, &also, &umask, path, act, &layout, &mode];
    let mut child = Child::start("act as user", &arguments);
    let answer = child.hears().unwrap();
    child.finish_well();
    answer
}

/// A directory of a user for a log to be made in.
fn home_of(uid: u32, gid: u32, mode: u32) -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
    let log = place(&dir);
    fs::create_dir(&log).unwrap();
    chown(&log, Some(uid), Some(gid)).unwrap();
    fs::set_permissions(&log, Permissions::from_mode(mode)).unwrap();
    (dir, log)
}

/// Asserts that each file is of `gid` and `mode`, and of one of `uids`.
#[track_caller]
fn assert_owned(log: &Path, uids: &[u32], gid: u32, mode: u32) {
    for entry in fs::read_dir(log).unwrap() {
        let entry = entry.unwrap();
        let (name, found) = (entry.file_name(), entry.metadata().unwrap());
        if found.is_symlink() {
            continue;
        }
        let writers = mode & 0o222;
        let mode = if name == "lock" { writers | writers << 1 } else { mode };
        let rights = (found.gid(), format!("{:o}", found.mode() & 0o777));
        assert_eq!(rights, (gid, format!("{mode:o}")), "{name:?}");
        assert!(uids.contains(&found.uid()), "{name:?} is of {}", found.uid());
    }
}

#[test]
fn what_root_makes_of_a_log_belongs_to_the_user_of_the_log() {
    if !is_root("what_root_makes_of_a_log") {
        return;
    }
    let root = User { umask: 0o077, ..user(0) };
    for (layout, create) in SHAPES {
        for mode in [0o600, 0o640, 0o664] {
            let (_dir, log) = home_of(SERVICE, SERVICE, 0o755);
            let service = User { umask: 0, ..user(SERVICE) };
            assert_eq!(act(service, &log, create, layout, mode), "done");
            let root_acts = || {
                assert_eq!(act(root, &log, "use", layout, mode), "done");
                assert_owned(&log, &[SERVICE], SERVICE, mode);
                assert_eq!(act(service, &log, "use", layout, mode), "done");
            };
            root_acts();
            fs::remove_file(log.join("control")).unwrap();
            root_acts();
            fs::remove_file(log.join("lock")).unwrap();
            root_acts();
            fs::remove_file(log.join("geometry")).unwrap();
            if layout == Layout::Text {
                let policy = Options::default().retain_files(1000).open(&log);
                drop(policy.unwrap());
            }
            root_acts();
            assert_sound(&Options::default().open(&log).unwrap());
        }
    }
}

#[test]
fn a_log_that_root_creates_belongs_to_the_owner_of_its_directory() {
    if !is_root("a_log_that_root_creates") {
        return;
    }
    for (layout, create) in SHAPES {
        let (_dir, log) = home_of(SERVICE, GROUP, 0o700);
        assert_eq!(act(user(0), &log, create, layout, 0o666), "done");
        assert_owned(&log, &[SERVICE], GROUP, 0o644);
        assert_eq!(act(user(SERVICE), &log, "use", layout, 0), "done");
    }
}

#[test]
fn a_log_stays_usable_for_two_users_of_one_group() {
    if !is_root("a_log_stays_usable") {
        return;
    }
    // The one has the group as its own, the other as a further one, and an umask that forbids all.
    let first = User { gid: GROUP, umask: 0, ..user(SERVICE) };
    let second = User { also: GROUP, umask: 0o077, ..user(OTHER) };
    for (layout, create) in SHAPES {
        for directory in [0o770, 0o2770] {
            let (_dir, log) = home_of(0, GROUP, directory);
            // Where the directory hands its group down, the order of the users does not matter.
            let creator = if directory == 0o770 { first } else { User { umask: 0, ..second } };
            assert_eq!(act(creator, &log, create, layout, 0o660), "done");
            for user in [second, first, second, user(0), first] {
                assert_eq!(act(user, &log, "use", layout, 0), "done");
                assert_owned(&log, &[SERVICE, OTHER], GROUP, 0o660);
            }
            for (user, name) in [(second, "control"), (second, "lock"), (first, "control")] {
                fs::remove_file(log.join(name)).unwrap();
                assert_eq!(act(user, &log, "use", layout, 0), "done", "without {name}");
                assert_owned(&log, &[SERVICE, OTHER], GROUP, 0o660);
            }
            assert_sound(&Options::default().open(&log).unwrap());
        }
    }
}

/// An access control list, as the kernel stores it: its owner, the users named, and no others.
fn list_of(users: &[u32]) -> Vec<u8> {
    const NOBODY: u32 = u32::MAX;
    let (owner, group, mask, others) =
        ((1, 7, NOBODY), (4, 0, NOBODY), (16, 7, NOBODY), (32, 0, NOBODY));
    let named = users.iter().map(|user| (2, 7, *user));
    let entries = [owner].into_iter().chain(named).chain([group, mask, others]);
    let entry = |(tag, rights, id): (u16, u16, u32)| {
        [&tag.to_le_bytes()[..], &rights.to_le_bytes(), &id.to_le_bytes()].concat()
    };
    [2_u32.to_le_bytes().to_vec()].into_iter().chain(entries.map(entry)).flatten().collect()
}

/// Lets users do everything with a directory, and with files that will be made in it.
fn let_in(dir: &Path, users: &[u32]) {
    let (path, list) = (CString::new(dir.to_str().unwrap()).unwrap(), list_of(users));
    for name in [c"system.posix_acl_access", c"system.posix_acl_default"] {
        // SAFETY: the strings end with NUL, and the value is as long as is said.
        let answer = unsafe {
            libc::setxattr(path.as_ptr(), name.as_ptr(), list.as_ptr().cast(), list.len(), 0)
        };
        assert_eq!(answer, 0, "{}", std::io::Error::last_os_error());
    }
}

#[test]
fn who_may_write_by_an_access_control_list_alone_makes_files_for_all_in_it() {
    if !is_root("who_may_write_by_an_access_control_list_alone") {
        return;
    }
    for (layout, create) in SHAPES {
        let (_dir, log) = home_of(SERVICE, SERVICE, 0o700);
        let_in(&log, &[SERVICE, OTHER]);
        assert_eq!(act(user(SERVICE), &log, create, layout, 0o660), "done");
        for user in [user(OTHER), user(SERVICE), user(OTHER), user(0), user(OTHER)] {
            assert_eq!(act(user, &log, "use", layout, 0), "done", "{layout} {}", user.uid);
        }
        assert!(act(user(OTHER + 1), &log, "use", layout, 0).starts_with("PermissionDenied"));
        assert_sound(&Options::default().open(&log).unwrap());
    }
}

/// Appends until a file would have to be made.
pub(crate) fn append_without_rights(arguments: &[String]) {
    let error =
        Options::default().open(&arguments[0]).and_then(|log| make_files(&log)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::PermissionDenied);
    assert!(error.to_string().contains("user 12345 and group 12345, with mode 600"), "{error}");
    child::say("refused");
}

#[test]
fn who_may_not_give_files_away_is_refused_and_the_others_go_on() {
    if !is_root("who_may_not_give_files_away") {
        return;
    }
    for (layout, create) in SHAPES {
        let (_dir, log) = home_of(SERVICE, SERVICE, 0o700);
        assert_eq!(act(user(SERVICE), &log, create, layout, 0o600), "done");
        let names = || {
            let entries = fs::read_dir(&log).unwrap();
            let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
            names.sort();
            names
        };
        let before = payloads(&Options::default().read_only(true).open(&log).unwrap());
        let role = child::command("append without rights", &[log.to_str().unwrap()]);
        let mut command = Command::new("setpriv");
        command.args(["--bounding-set", "-chown", "--inh-caps", "-chown", "--"]);
        command.arg(role.get_program()).args(role.get_args());
        command.envs(role.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let mut child = Child::from_command("append without rights", command);
        child.expect("refused");
        child.finish_well();
        assert!(names().iter().all(|name| name != "segment.new"), "{:?}", names());
        assert_owned(&log, &[SERVICE], SERVICE, 0o600);
        let after = payloads(&Options::default().read_only(true).open(&log).unwrap());
        assert!(after.starts_with(&before));
        assert_eq!(act(user(SERVICE), &log, "use", layout, 0), "done");
    }
}

/// As in a service whose filter has calls fail that give files away.
#[test]
fn root_makes_files_that_all_may_use_where_it_cannot_give_them_away() {
    if !is_root("root_makes_files_that_all_may_use") {
        return;
    }
    for errno in [libc::EPERM, libc::ENOSYS] {
        for (mode, wanted) in [(0o666, Ok(())), (0o644, Err(ErrorKind::PermissionDenied))] {
            let (_dir, log) = home_of(SERVICE, SERVICE, 0o755);
            let maker = User { umask: 0, ..user(SERVICE) };
            assert_eq!(act(maker, &log, "create", Layout::Text, mode), "done");
            let made = where_it_fails(libc::SYS_fchown, errno, || {
                Options::default().open(&log).and_then(|log| make_files(&log))
            });
            assert_eq!(made.map_err(|error| error.kind()), wanted, "errno {errno}, {mode:o}");
        }
    }
}
