//! Failures, in any thread, and the files that they leave.

use std::fs;
use std::path::Path;

use vellum_parallel::{Error, ErrorKind, FileOptions, Method};
use vellum_testing::child::{self, Child};
use vellum_testing::mount::Mount;
use vellum_testing::{kernel, scratch, until};

use super::METHODS;

const MIB: usize = 1 << 20;

#[test]
fn a_file_that_is_there_is_left_alone() {
    let dir = scratch();
    let path = dir.path().join("result");
    fs::write(&path, b"mine").unwrap();
    let error = FileOptions::new().create(&path).unwrap_err();
    assert_eq!((error.kind(), error.path()), (ErrorKind::AlreadyExists, Some(&*path)));
    assert_eq!(fs::read(&path).unwrap(), b"mine");
}

#[test]
fn an_unfinished_file_is_removed_unless_it_is_to_be_kept() {
    let dir = scratch();
    let path = dir.path().join("result");
    for method in METHODS {
        let options = FileOptions::new().len(100).method(method);
        let file = options.create(&path).unwrap();
        file.write_at(0, b"half").unwrap();
        drop(file);
        assert!(!path.exists(), "{method}");
        drop(options.clone().keep_partial(true).create(&path).unwrap());
        assert!(path.exists(), "{method}");
        fs::remove_file(&path).unwrap();
    }
    // Another program's file has taken the name.
    let file = FileOptions::new().create(&path).unwrap();
    fs::remove_file(&path).unwrap();
    fs::write(&path, b"other").unwrap();
    drop(file);
    assert_eq!(fs::read(&path).unwrap(), b"other");
}

#[test]
fn a_way_that_is_refused_is_not_taken() {
    let dir = scratch();
    let bytes = vec![7; MIB];
    for errno in [libc::EINVAL, libc::EOPNOTSUPP, libc::ENOSYS] {
        let path = dir.path().join(errno.to_string());
        let options = FileOptions::new().len(MIB as u64).method(Method::Direct);
        let write = || {
            let file = options.create(&path).unwrap();
            file.write_at(0, &bytes).unwrap();
            assert_eq!(file.method(), Method::Buffered);
            file.finish().unwrap();
        };
        kernel::where_it_fails(libc::SYS_pwritev, errno, write);
        assert!(fs::read(path).unwrap() == bytes, "{errno}");
    }
}

#[test]
fn a_thread_alone_writes_directly_where_the_page_cache_would_keep_it() {
    let dir = scratch();
    let bytes = super::bytes_at(0, 5 * MIB + 5);
    for errno in [None, Some(libc::EINVAL), Some(libc::EOPNOTSUPP), Some(libc::ENOSYS)] {
        let path = dir.path().join("result");
        let options = FileOptions::new().len(bytes.len() as u64).method(Method::Direct);
        let write = || {
            let file = options.create(&path).unwrap();
            for (index, piece) in bytes.chunks(MIB - 100).enumerate() {
                file.write_at((index * (MIB - 100)) as u64, piece).unwrap();
            }
            assert_eq!(file.finish().unwrap().method, Method::Direct);
        };
        match errno {
            Some(errno) => kernel::where_it_fails(libc::SYS_pwritev2, errno, write),
            None => write(),
        }
        super::assert_content(&path, &bytes, &format!("{errno:?}"));
        fs::remove_file(&path).unwrap();
    }
}

#[test]
fn an_error_of_a_thread_alone_is_told_by_its_write() {
    let dir = scratch();
    let piece = vec![7; MIB];
    let path = dir.path().join("result");
    let options = FileOptions::new().len(4 * MIB as u64).method(Method::Direct);
    kernel::where_it_fails(libc::SYS_pwritev2, libc::EIO, || {
        let file = options.create(&path).unwrap();
        file.write_at(0, &piece).unwrap();
        let error = file.write_at(MIB as u64, &piece).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io);
        assert_eq!(file.finish().unwrap_err().to_string(), error.to_string());
    });
    assert!(!path.exists());
}

#[test]
fn pieces_beyond_the_end_or_over_each_other_are_refused() {
    let dir = scratch();
    let path = dir.path().join("result");
    for method in METHODS {
        for (offset, len, kind) in [
            (99, 2, ErrorKind::OutOfRange),
            (u64::MAX, 2, ErrorKind::OutOfRange),
            (101, 0, ErrorKind::OutOfRange),
            (9, 1, ErrorKind::InvalidOption),
            (0, 100, ErrorKind::InvalidOption),
        ] {
            let file = FileOptions::new().len(100).method(method).create(&path).unwrap();
            file.write_at(5, b"twelve").unwrap();
            let error = file.write_at(offset, &vec![1; len]).unwrap_err();
            assert_eq!((error.kind(), error.path()), (kind, Some(&*path)), "{error}");
            assert!(error.to_string().contains(&format!("offset {offset}")), "{error}");
            let later = file.write_at(50, b"fine").unwrap_err();
            assert_eq!(later.to_string(), error.to_string(), "the first error ends the work");
            assert_eq!(file.finish().unwrap_err().to_string(), error.to_string());
            assert!(!path.exists());
        }
    }
}

/// Has three threads write 64 MiB, which are more than there is; answers the error.
fn overfill(path: &Path, options: &FileOptions) -> Error {
    // The space of the file before may not be free yet.
    let file = until("the file can be made", || options.create(path).ok());
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let file = &file;
            scope.spawn(move || {
                let piece = vec![1; MIB + 5];
                let mut offsets = (thread..60).step_by(3).map(|index| index * piece.len() as u64);
                offsets.try_for_each(|offset| file.write_at(offset, &piece))
            });
        }
    });
    file.finish().unwrap_err()
}

fn check_full_disk(mount: &Path) {
    let path = mount.join("result");
    for method in METHODS {
        for sync in [true, false] {
            let options = FileOptions::new().method(method).sync(sync);
            let known = options.clone().len(64 << 20);
            let prepared = known.create(&path).unwrap().prepare();
            let prepared = prepared.err().map(|error| error.kind());
            assert!(prepared.is_none_or(|kind| kind == ErrorKind::NoSpace), "{prepared:?}");
            for options in [known, options] {
                let error = overfill(&path, &options);
                assert_eq!(error.kind(), ErrorKind::NoSpace, "{error} with {options:?}");
                assert_eq!(error.path(), Some(&*path), "{error}");
                assert!(error.to_string().contains("offset"), "{error}");
                assert!(!path.exists(), "nothing is left: {options:?}");
            }
        }
    }
    // The space is free again, once children that other tests have forked have closed the files.
    until("there is space again", || {
        let file = FileOptions::new().len(4 << 20).create(&path).ok()?;
        file.write_at(0, &vec![1; 4 * MIB]).ok()?;
        file.finish().ok()
    });
}

#[test]
fn a_full_disk_is_an_error_and_nothing_is_left() {
    let test = "a_full_disk_is_an_error_and_nothing_is_left";
    for mount in [Mount::tmpfs(test, 16), Mount::ext4(test, 32)].into_iter().flatten() {
        check_full_disk(mount.path());
    }
    for mount in [Mount::xfs(test), Mount::btrfs(test, 128)].into_iter().flatten() {
        let ballast = fs::File::create(mount.path().join("ballast")).unwrap();
        let mut free = rustix::fs::fstatvfs(&ballast).unwrap();
        while free.f_bavail * free.f_frsize > 40 << 20 {
            let end = ballast.metadata().unwrap().len();
            if vellum_sys::file::allocate_range(&ballast, end, 8 << 20).is_err() {
                break;
            }
            free = rustix::fs::fstatvfs(&ballast).unwrap();
        }
        check_full_disk(mount.path());
    }
}

/// Fills a filesystem where the kernel says that it makes blocks for a mapping, and makes none.
pub(crate) fn fill_without_advice(arguments: &[String]) {
    kernel::ignore_advice();
    check_full_disk(Path::new(&arguments[0]));
    child::say("alive");
}

#[test]
fn a_full_disk_is_no_signal_where_no_advice_is_followed() {
    let test = "a_full_disk_is_no_signal_where_no_advice_is_followed";
    let Some(mount) = Mount::tmpfs(test, 16) else { return };
    let mut child = Child::start("fill without advice", &[mount.path().to_str().unwrap()]);
    child.expect("alive");
    child.finish_well();
}

/// Writes more than this process may, under a limit of the size of files.
pub(crate) fn write_under_a_size_limit(arguments: &[String]) {
    let limit = libc::rlimit { rlim_cur: 5_000_000, rlim_max: 5_000_000 };
    // SAFETY: `limit` outlives the call.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit) }, 0);
    let path = Path::new(&arguments[0]);
    for method in METHODS {
        let options = FileOptions::new().method(method);
        let error = options.clone().len(5_000_001).create(path).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
        let file = options.create(path).unwrap();
        file.write_at(0, &vec![1; 4_999_999]).unwrap();
        let error = file.write_at(4_999_999, b"ab").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
        drop(file);
        let file = options.len(5_000_000).create(path).unwrap();
        file.write_at(0, &vec![1; 5_000_000]).unwrap();
        file.finish().expect("as long as it may be");
        fs::remove_file(path).unwrap();
    }
    child::say("alive");
}

#[test]
fn the_file_size_limit_is_an_error_and_no_signal() {
    let dir = scratch();
    let path = dir.path().join("result");
    let mut child = Child::start("write under a size limit", &[path.to_str().unwrap()]);
    child.expect("alive");
    child.finish_well();
}

#[test]
fn a_failing_device_is_an_error_of_the_sync_at_the_latest() {
    let test = "a_failing_device_is_an_error_of_the_sync_at_the_latest";
    for method in METHODS {
        // Thin: the filesystem believes in more blocks than its disk has.
        let Some(disk) = Mount::tmpfs(test, 12) else { return };
        let Some(thin) = Mount::ext4_on(test, &disk.path().join("image"), 64) else { return };
        let path = thin.path().join("result");
        let len = 32 << 20;
        let file =
            FileOptions::new().len(len as u64).method(method).sync(true).create(&path).unwrap();
        let written = file.write_at(0, &vec![1; len]);
        let error = file.finish().expect_err("the device has no place for it");
        assert!(matches!(error.kind(), ErrorKind::Io | ErrorKind::NoSpace), "{method}: {error}");
        assert_eq!(error.path(), Some(&*path));
        assert!(method != Method::Direct || written.is_err(), "told by the write itself");
    }
}
