//! A user that may write in the directory of a log can give a name of the log to a private file of
//! root. Root's processes neither write into that file nor pass on its content.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use vellum::{ErrorKind, Fill, Layout, Log, Lsn, Options, Tuning};

use crate::support::{is_root, place, segment_files, small};

const GROUP: u32 = 23456;

/// Longer than any file of the logs here, so that no offset of theirs is behind it.
fn secret() -> Vec<u8> {
    b"a secret of root\n".repeat(2000)
}

/// A log of root's that a group shares, with a few closed segments.
fn shared_log(options: &Options) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
    fs::create_dir(place(&dir)).unwrap();
    chown(place(&dir), None, Some(GROUP)).unwrap();
    fs::set_permissions(place(&dir), Permissions::from_mode(0o2770)).unwrap();
    let log = options.open(place(&dir)).unwrap();
    fill(&log).unwrap();
    log.cursor("one", Lsn::ZERO).unwrap();
    drop(log);
    for entry in fs::read_dir(place(&dir)).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_file() {
            assert_eq!(entry.metadata().unwrap().gid(), GROUP, "{entry:?}");
            fs::set_permissions(entry.path(), Permissions::from_mode(0o660)).unwrap();
        }
    }
    dir
}

fn fill(log: &Log) -> vellum::Result<()> {
    for _ in 0..5 {
        log.append(&[&[b'x'; 3000][..], b"\n"].concat())?;
    }
    log.sync().map(drop)
}

/// Moves a private file of root's to `path`, and returns it.
fn move_secret_to(path: &Path) -> File {
    let private = path.with_file_name("private");
    fs::write(&private, secret()).unwrap();
    chown(&private, None, Some(0)).unwrap();
    fs::set_permissions(&private, Permissions::from_mode(0o600)).unwrap();
    let file = File::options().read(true).open(&private).unwrap();
    fs::rename(private, path).unwrap();
    file
}

/// Has root use the log in every way that writes.
fn use_everything(path: &Path) -> vellum::Result<()> {
    let log = Options::default().open(path)?;
    let used = fill(&log);
    log.prepare(1)?;
    if log.layout() == Layout::Text {
        log.rotate()?;
    }
    let cursor = log.cursor("two", Lsn::ZERO)?;
    cursor.set(log.tail())?;
    let cut = log.append(b"cut\n")?;
    log.truncate(cut)?;
    used
}

/// Asserts that the secret is as it was, and that the group reads no copy of it.
#[track_caller]
fn assert_kept(log: &Path, private: &File) {
    let mut found = vec![0; secret().len() + 1];
    let len = private.read_at(&mut found, 0).unwrap();
    assert!(found[..len] == secret(), "was written into");
    let found = private.metadata().unwrap();
    assert_eq!((found.mode() & 0o777, found.uid(), found.gid()), (0o600, 0, 0), "was given away");
    for entry in fs::read_dir(log).unwrap().map(Result::unwrap) {
        let path = entry.path();
        let is_other = entry.metadata().unwrap().ino() != found.ino();
        if entry.file_type().unwrap().is_file() && is_other {
            let bytes = fs::read(&path).unwrap();
            let holds = text_of(bytes).windows(16).any(|window| window == b"a secret of root");
            assert!(!holds, "{} holds the secret", path.display());
        }
    }
}

/// The content of a file, decompressed if it is compressed.
fn text_of(bytes: Vec<u8>) -> Vec<u8> {
    #[cfg(feature = "zstd")]
    let bytes = zstd::decode_all(&*bytes).unwrap_or(bytes);
    bytes
}

fn shapes() -> [(Layout, Fill); 4] {
    [
        (Layout::Framed, Fill::Mapped),
        (Layout::Framed, Fill::Staged),
        (Layout::Text, Fill::Mapped),
        (Layout::Text, Fill::Pwrite),
    ]
}

#[test]
fn a_private_file_with_the_name_of_a_file_of_the_log_is_not_written() {
    if !is_root("a_private_file_with_the_name") {
        return;
    }
    for (layout, fill) in shapes() {
        let options = small(layout).tuning(Tuning::new().fill(fill));
        let names = shared_log(&options);
        let mut names: Vec<PathBuf> =
            fs::read_dir(place(&names)).unwrap().map(|entry| entry.unwrap().path()).collect();
        names.retain(|name| name.file_name().unwrap() != "current");
        for name in names {
            let dir = shared_log(&options);
            // Names of text files have a time in them.
            let index = segment_files(name.parent().unwrap()).iter().position(|file| *file == name);
            let path = match index {
                Some(index) => segment_files(&place(&dir))[index].clone(),
                None => place(&dir).join(name.file_name().unwrap()),
            };
            let private = move_secret_to(&path);
            let used = use_everything(&place(&dir));
            let what = format!("{layout} {fill} {}: {used:?}", path.display());
            if let Err(error) = used {
                assert!(!error.to_string().contains("secret"), "{what}");
            }
            println!("{what}");
            assert_kept(&place(&dir), &private);
        }
    }
}

#[test]
fn the_newest_text_file_that_is_private_is_refused_by_name() {
    if !is_root("the_newest_text_file_that_is_private") {
        return;
    }
    let dir = shared_log(&small(Layout::Text).tuning(Tuning::new().fill(Fill::Pwrite)));
    let newest = segment_files(&place(&dir)).pop().unwrap();
    let private = move_secret_to(&newest);
    let log = Options::default().open(place(&dir));
    let error = log.and_then(|log| log.append(b"line\n")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error}");
    assert_eq!(error.path(), Some(&*newest), "{error}");
    assert_kept(&place(&dir), &private);
    // The administrator of the log marks it as belonging there.
    fs::set_permissions(&newest, Permissions::from_mode(0o660)).unwrap();
    chown(&newest, None, Some(GROUP)).unwrap();
    Options::default().open(place(&dir)).unwrap().append(b"line\n").unwrap();
}

#[cfg(feature = "zstd")]
#[test]
fn a_private_file_is_not_compressed_for_others() {
    if !is_root("a_private_file_is_not_compressed") {
        return;
    }
    let dir = shared_log(&small(Layout::Text).tuning(Tuning::new().fill(Fill::Pwrite)));
    let closed = segment_files(&place(&dir));
    let private = move_secret_to(&closed[1]);
    fs::set_permissions(&closed[2], Permissions::from_mode(0o640)).unwrap();
    let log = Options::default().compress(true).open(place(&dir)).unwrap();
    log.rotate().unwrap();
    log.append(b"in a new file\n").unwrap();
    drop(log);
    assert_kept(&place(&dir), &private);
    for (file, (ending, mode)) in closed.iter().zip([(".zst", 0o660), ("", 0o600), (".zst", 0o640)])
    {
        let file = PathBuf::from(format!("{}{ending}", file.display()));
        let found = file.metadata().unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        assert_eq!(found.mode() & 0o777, mode, "{}", file.display());
    }
}

#[test]
fn a_private_file_is_not_shipped() {
    if !is_root("a_private_file_is_not_shipped") {
        return;
    }
    let dir = shared_log(&small(Layout::Text).tuning(Tuning::new().fill(Fill::Pwrite)));
    let closed = segment_files(&place(&dir));
    let private = move_secret_to(&closed[1]);
    let log = Options::default().open(place(&dir)).unwrap();
    log.sync().unwrap();
    let shipper = log.ship().elect().unwrap().unwrap();
    let (mut at, mut buf) = (shipper.begin(), vec![0; 1 << 20]);
    let error = loop {
        match shipper.read(at, &mut buf) {
            Ok(piece) => {
                assert!(!buf[..piece.len].windows(16).any(|found| found == &secret()[..16]));
                assert_ne!(piece.next, at, "the end was reached without an error");
                at = piece.next;
            }
            Err(error) => break error,
        }
    };
    assert_eq!((error.kind(), error.path()), (ErrorKind::PermissionDenied, Some(&*closed[1])));
    assert_kept(&place(&dir), &private);
}

#[test]
fn a_private_file_is_not_saved_into_a_repaired_log() {
    if !is_root("a_private_file_is_not_saved") {
        return;
    }
    for (layout, fill) in shapes() {
        let dir = shared_log(&small(layout).tuning(Tuning::new().fill(fill)));
        let closed = segment_files(&place(&dir))[1].clone();
        let private = move_secret_to(&closed);
        let saved = dir.path().join("saved");
        let report = vellum::repair(place(&dir), &saved).unwrap();
        assert!(report.damage.iter().any(|damage| damage.path == closed), "{:?}", report.damage);
        assert!(report.records > 0);
        assert_kept(&saved, &private);
        assert_kept(&place(&dir), &private);
    }
}
