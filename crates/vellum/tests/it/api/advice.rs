//! `vellum.toml`: which file is followed, which is refused, and that it never overrules a program.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::Path;

use vellum::advice::Method;
use vellum::stat::Stat;
use vellum::{ErrorKind, Fill, Options, Preallocate, Tuning};
use vellum_advice::{Advice, FILE_NAME};

use crate::support::child::{self, Child};
use crate::support::mount::Mount;
use crate::support::{become_nobody, is_root, open_to_all, scratch};

const NOBODY: u32 = 65534;

pub(super) fn advise(dir: &Path, text: &str) {
    let path = dir.join(FILE_NAME);
    fs::write(&path, text).unwrap();
    fs::set_permissions(path, Permissions::from_mode(0o644)).unwrap();
}

/// Options that follow the nearest file.
pub(super) fn following() -> Options {
    Options::default().tuning(Tuning::new().advice_from(vellum_advice::nearest))
}

fn following_wal() -> Options {
    Options::wal().exclusive(false).tuning(Tuning::new().advice_from(vellum_advice::nearest))
}

/// The state of a log that these options create.
fn made(options: &Options, path: &Path) -> Stat {
    options.open(path).unwrap().stat().unwrap()
}

#[test]
fn a_program_goes_before_the_file_and_the_file_before_what_is_built_in() {
    let dir = scratch();
    advise(
        dir.path(),
        "[log]\nfill = \"pwrite\"\npreallocate = \"off\"\nsegment_capacity_bytes = 8192\n",
    );
    let advised = made(&following(), &dir.path().join("a"));
    assert_eq!((advised.fill, advised.preallocate), (Fill::Pwrite, Preallocate::Off));
    assert_eq!(advised.segment_capacity_bytes, 8192);
    let path = dir.path().canonicalize().unwrap().join(FILE_NAME);
    assert_eq!(advised.advice, Some(path));
    let options = following()
        .tuning(Tuning::new().preallocate(Preallocate::Fallocate).segment_capacity_bytes(4096));
    let chosen = made(&options, &dir.path().join("b"));
    assert_eq!((chosen.fill, chosen.preallocate), (Fill::Pwrite, Preallocate::Fallocate));
    assert_eq!(chosen.segment_capacity_bytes, 4096);
    let alone = made(&Options::default(), &dir.path().join("c"));
    assert_eq!((alone.preallocate, alone.advice), (Preallocate::Auto, None));
    assert_eq!(alone.segment_capacity_bytes, 64 << 20);
}

#[test]
fn the_nearest_file_above_the_log_is_taken_whole() {
    let dir = scratch();
    let below = dir.path().join("one/two");
    fs::create_dir_all(&below).unwrap();
    advise(dir.path(), "[log]\npreallocate = \"off\"\nsegment_capacity_bytes = 8192\n");
    let far = made(&following(), &below.join("a"));
    assert_eq!((far.preallocate, far.segment_capacity_bytes), (Preallocate::Off, 8192));
    advise(&dir.path().join("one"), "[log]\nsegment_capacity_bytes = 12288\n");
    let near = made(&following(), &below.join("b"));
    assert_eq!((near.preallocate, near.segment_capacity_bytes), (Preallocate::Auto, 12288));
    let found = vellum_advice::find(&below).unwrap().unwrap();
    assert_eq!(found.1.log.segment_capacity_bytes, Some(12288));
    // Where a link leads to, and not where it is.
    symlink(&below, dir.path().join("link")).unwrap();
    let linked = made(&following(), &dir.path().join("link/c"));
    assert_eq!(linked.segment_capacity_bytes, 12288);
}

#[test]
fn what_lies_in_the_directory_of_the_log_itself_does_not_count() {
    let dir = scratch();
    let log = dir.path().join("log");
    fs::create_dir(&log).unwrap();
    advise(&log, "[log]\nsegment_capacity_bytes = 8192\n");
    let error = following().open(&log).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Incompatible, "{error}");
}

#[test]
fn a_file_of_another_filesystem_does_not_count() {
    let Some(mount) = Mount::tmpfs("a_file_of_another_filesystem", 16) else { return };
    let above = mount.path().parent().unwrap();
    advise(above, "[log]\nsegment_capacity_bytes = 8192\n");
    assert!(vellum_advice::find(above).unwrap().is_some());
    assert_eq!(vellum_advice::find(mount.path()).unwrap(), None);
    let options = following().tuning(Tuning::new().preallocate(Preallocate::Off));
    assert_eq!(made(&options, &mount.path().join("a")).segment_capacity_bytes, 64 << 20);
    fs::set_permissions(mount.path(), Permissions::from_mode(0o755)).unwrap();
    advise(mount.path(), "[log]\nsegment_capacity_bytes = 12288\n");
    assert_eq!(made(&options, &mount.path().join("b")).segment_capacity_bytes, 12288);
}

#[test]
fn a_log_that_exists_is_not_touched() {
    let dir = scratch();
    let path = dir.path().join("log");
    let before = made(&following().tuning(Tuning::new().segment_capacity_bytes(4096)), &path);
    for text in ["[log]\nsegment_capacity_bytes = 8192\npreallocate = \"off\"\n", "damaged"] {
        advise(dir.path(), text);
        let after = made(&following(), &path);
        assert_eq!(after.segment_capacity_bytes, 4096);
        assert_eq!((after.preallocate, after.advice), (before.preallocate, None));
        // Nor one that is made again from its segments.
        following().open(&path).unwrap().append(b"record").unwrap();
        fs::remove_file(path.join("control")).unwrap();
        assert_eq!(made(&following(), &path).segment_capacity_bytes, 4096);
    }
}

#[test]
fn a_text_log_passes_over_what_is_for_framed_logs_alone() {
    let dir = scratch();
    for way in ["recycle", "zeros"] {
        let text = format!("[log]\npreallocate = \"{way}\"\nsegment_capacity_bytes = 8192\n");
        advise(dir.path(), &text);
        let text = vellum::internal::with_layout(following(), vellum::Layout::Text);
        let text = made(&text, &dir.path().join(format!("t{way}")));
        assert_eq!((text.preallocate, text.segment_capacity_bytes), (Preallocate::Auto, 8192));
        let framed = made(&following(), &dir.path().join(format!("f{way}")));
        assert_eq!(framed.preallocate.to_string(), way);
    }
    advise(dir.path(), "[log]\npreallocate = \"sparse\"\n");
    let mapped =
        made(&following().tuning(Tuning::new().fill(Fill::Mapped)), &dir.path().join("mapped"));
    assert_eq!((mapped.fill, mapped.preallocate), (Fill::Mapped, Preallocate::Auto));
    let sparse = made(&following(), &dir.path().join("sparse"));
    assert_eq!((sparse.fill, sparse.preallocate), (Fill::Pwrite, Preallocate::Sparse));
}

#[test]
fn a_write_ahead_log_follows_its_own_section() {
    let dir = scratch();
    let wal = "[wal]\nsegment_capacity_bytes = 8192\n[log]\nsegment_capacity_bytes = 12288\n";
    advise(dir.path(), wal);
    let capacity = |options: &Options, name: &str| {
        made(options, &dir.path().join(name)).segment_capacity_bytes
    };
    assert_eq!(capacity(&following_wal(), "a"), 8192);
    assert_eq!(capacity(&following().tuning(Tuning::new().fill(Fill::Staged)), "b"), 8192);
    assert_eq!(capacity(&following(), "c"), 12288);
    assert_eq!(capacity(&following_wal().tuning(Tuning::new().fill(Fill::Pwrite)), "d"), 12288);
}

#[test]
fn a_write_ahead_log_is_filled_as_advised_unless_the_program_says_how() {
    let dir = scratch();
    advise(dir.path(), "[wal]\nfill = \"pwrite\"\npreallocate = \"recycle\"\n");
    let path = dir.path().join("wal");
    let wal = following_wal().open(&path).unwrap();
    let stat = wal.stat().unwrap();
    assert_eq!((stat.fill, stat.preallocate), (Fill::Pwrite, Preallocate::Recycle));
    wal.commit(wal.append(b"an order").unwrap()).unwrap();
    drop(wal);
    // With the same options again, and without the file.
    fs::remove_file(dir.path().join(FILE_NAME)).unwrap();
    assert_eq!(made(&following_wal(), &path).fill, Fill::Pwrite);
    let mapped = following_wal().tuning(Tuning::new().fill(Fill::Mapped));
    assert_eq!(made(&mapped, &path).fill, Fill::Pwrite, "the log keeps its own");
    advise(dir.path(), "[wal]\nfill = \"pwrite\"\n");
    let staged =
        made(&following_wal().tuning(Tuning::new().fill(Fill::Staged)), &dir.path().join("staged"));
    let built_in = made(&Options::wal().exclusive(false), &dir.path().join("built in"));
    assert_eq!(staged.fill, built_in.fill);
}

#[test]
fn what_is_no_plain_file_of_ours_is_refused() {
    type Make = fn(&Path);
    let makers: [(&str, Make); 6] = [
        ("link", |path| {
            fs::write(path.with_file_name("other"), "").unwrap();
            symlink("other", path).unwrap();
        }),
        ("directory", |path| fs::create_dir(path).unwrap()),
        ("pipe", |path| {
            let mode = rustix::fs::Mode::from_raw_mode(0o644);
            rustix::fs::mkfifoat(rustix::fs::CWD, path, mode).unwrap();
        }),
        ("for everybody", |path| {
            fs::write(path, "").unwrap();
            fs::set_permissions(path, Permissions::from_mode(0o666)).unwrap();
        }),
        ("long", |path| fs::write(path, " ".repeat((64 << 10) + 1)).unwrap()),
        ("bytes", |path| fs::write(path, b"# \xff\n").unwrap()),
    ];
    for (what, make) in makers {
        let dir = scratch();
        make(&dir.path().join(FILE_NAME));
        let error = following().open(dir.path().join("log")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidOption, "{what}: {error}");
        assert!(error.path().unwrap().ends_with(FILE_NAME), "{what}: {error}");
    }
    let dir = scratch();
    advise(dir.path(), &format!("#{}", " ".repeat((64 << 10) - 1)));
    assert_eq!(vellum_advice::read(dir.path()).unwrap(), Some(Advice::default()));
}

#[test]
fn a_file_of_somebody_else_neither_steers_nor_stops() {
    if !is_root("a_file_of_somebody_else") {
        return;
    }
    let dir = scratch();
    let below = dir.path().join("below");
    fs::create_dir(&below).unwrap();
    advise(dir.path(), "[log]\nsegment_capacity_bytes = 8192\n");
    for text in ["[log]\nsegment_capacity_bytes = 4096\n", "damaged"] {
        advise(&below, text);
        chown(below.join(FILE_NAME), Some(NOBODY), None).unwrap();
        assert_eq!(vellum_advice::read(&below).unwrap(), None);
        let log = below.join("log");
        let stat = made(&following(), &log);
        assert_eq!(stat.segment_capacity_bytes, 8192, "the next one above is taken");
        fs::remove_dir_all(log).unwrap();
    }
    // The owner of the directory has a say in it.
    chown(&below, Some(NOBODY), None).unwrap();
    assert_eq!(vellum_advice::read(&below).unwrap_err().kind(), ErrorKind::InvalidOption);
    advise(&below, "[log]\nsegment_capacity_bytes = 4096\n");
    assert_eq!(made(&following(), &below.join("log")).segment_capacity_bytes, 4096);
}

/// A group for which a directory or a file is.
const GROUP: u32 = 23456;

#[test]
fn a_file_that_others_could_have_put_there_neither_steers_nor_stops() {
    if !is_root("a_file_that_others_could_have_put_there") {
        return;
    }
    let dir = scratch();
    let below = dir.path().join("below");
    fs::create_dir(&below).unwrap();
    advise(dir.path(), "[log]\nsegment_capacity_bytes = 8192\n");
    advise(&below, "damaged");
    // For all users as `/tmp` is, for a group, of another user.
    for (mode, owner, group) in
        [(0o1777, 0, 0), (0o777, 0, 0), (0o775, 0, GROUP), (0o1770, 0, GROUP), (0o755, NOBODY, 0)]
    {
        chown(&below, Some(owner), Some(group)).unwrap();
        fs::set_permissions(&below, Permissions::from_mode(mode)).unwrap();
        let what = format!("{mode:o} {owner} {group}");
        assert_eq!(vellum_advice::read(&below).unwrap(), None, "{what}");
        let log = below.join("log");
        assert_eq!(made(&following(), &log).segment_capacity_bytes, 8192, "{what}");
        fs::remove_dir_all(log).unwrap();
    }
    assert!(vellum_advice::check_directory(&below).is_ok());
    fs::set_permissions(&below, Permissions::from_mode(0o1777)).unwrap();
    let error = vellum_advice::check_directory(&below).unwrap_err();
    assert_eq!((error.kind(), error.path()), (ErrorKind::InvalidOption, Some(&*below)));
}

#[test]
fn a_file_that_a_group_may_write_to_is_refused() {
    if !is_root("a_file_that_a_group_may_write_to") {
        return;
    }
    let dir = scratch();
    advise(dir.path(), "[log]\nsegment_capacity_bytes = 8192\n");
    let file = dir.path().join(FILE_NAME);
    fs::set_permissions(&file, Permissions::from_mode(0o664)).unwrap();
    assert!(vellum_advice::read(dir.path()).unwrap().is_some(), "the group is the owner's own");
    chown(&file, None, Some(GROUP)).unwrap();
    // Changing the owner is free to take rights away.
    fs::set_permissions(&file, Permissions::from_mode(0o664)).unwrap();
    let error = vellum_advice::read(dir.path()).unwrap_err();
    assert_eq!((error.kind(), error.path()), (ErrorKind::InvalidOption, Some(&*file)), "{error}");
}

/// Prints, as another user, the result of creating a log.
pub(crate) fn create_as_nobody(arguments: &[String]) {
    become_nobody();
    child::say(&match following().open(&arguments[0]) {
        Ok(log) => log.stat().unwrap().segment_capacity_bytes.to_string(),
        Err(error) => format!("{:?} {}", error.kind(), error.path().unwrap().display()),
    });
}

#[test]
fn a_file_of_root_counts_for_everybody_and_has_to_be_readable() {
    if !is_root("a_file_of_root") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
    let (file, open) = (dir.path().join(FILE_NAME), dir.path().join("open"));
    fs::create_dir(&open).unwrap();
    open_to_all(&open);
    let answer = |name: &str| {
        let log = open.join(name);
        let mut nobody = Child::start("create as nobody", &[log.to_str().unwrap()]);
        let answer = nobody.hears().unwrap();
        nobody.finish_well();
        answer
    };
    advise(dir.path(), "[log]\nsegment_capacity_bytes = 8192\n");
    assert_eq!(answer("a"), "8192");
    fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
    let refused = answer("b");
    assert!(refused.starts_with("PermissionDenied") && refused.ends_with(FILE_NAME), "{refused}");
}

/// Writes down the known advice for the filesystem of `dir`, and compares the log that follows it
/// with one without advice.
fn follow_what_is_known(dir: &Path) -> Advice {
    fs::set_permissions(dir, Permissions::from_mode(0o755)).unwrap();
    let known = Advice::known(dir).unwrap();
    let built_in = made(&Options::default(), &dir.join("built in"));
    assert_eq!(known.log.fill, Some(built_in.fill));
    assert_eq!(known.log.segment_capacity_bytes, Some(built_in.segment_capacity_bytes));
    advise(dir, &vellum_advice::to_toml(&known, "measured by nobody"));
    assert_eq!(vellum_advice::read(dir).unwrap(), Some(known));
    let followed = made(&following(), &dir.join("followed"));
    assert_eq!(Some(followed.preallocate), known.log.preallocate);
    assert_eq!(followed.fill, built_in.fill);
    let blocks = |stat: &Stat| stat.segments[0].allocated_bytes;
    // Where memory is slow, space is made ready by a quarter of a mebibyte and not by a whole one.
    let differ = blocks(&followed).abs_diff(blocks(&built_in));
    assert!(differ < 1 << 20, "{followed:?} {built_in:?} {known:?}");
    let wal = made(&following_wal(), &dir.join("wal"));
    assert_eq!((Some(wal.fill), Some(wal.preallocate)), (known.wal.fill, known.wal.preallocate));
    known
}

#[test]
fn what_is_known_can_be_written_and_followed() {
    follow_what_is_known(scratch().path());
    if let Some(mount) = Mount::tmpfs("what_is_known", 256) {
        let known = follow_what_is_known(mount.path());
        assert_eq!(known.log.preallocate, Some(Preallocate::Fallocate));
        assert_eq!(known.file.method, Some(Method::Mapped));
    }
}

#[test]
fn on_btrfs_nothing_is_allocated_that_could_not_be_kept() {
    let Some(mount) = Mount::btrfs("on_btrfs_nothing_is_allocated", 256) else { return };
    let known = follow_what_is_known(mount.path());
    let log = (known.log.fill, known.log.preallocate);
    assert_eq!(log, (Some(Fill::Pwrite), Some(Preallocate::Off)));
    let blocks = |stat: Stat| stat.segments.iter().map(|file| file.allocated_bytes).sum::<u64>();
    let options = Options::default();
    let auto = options.open(mount.path().join("auto")).unwrap();
    auto.append(b"record").unwrap();
    assert!(blocks(auto.stat().unwrap()) < 128 << 10, "{:?}", auto.stat());
    let chosen = options.tuning(Tuning::new().preallocate(Preallocate::Fallocate));
    assert!(blocks(made(&chosen, &mount.path().join("chosen"))) >= 256 << 10);
}
