//! A device that fails, for real: a filesystem on a loop device whose own disk is full.

use vellum::{ErrorKind, Fill, Layout, Options};

use crate::support::child::{Child, hear, say};
use crate::support::mount::Mount;
use crate::support::{payload, read_all};

/// Appends durably until that fails, and says how.
pub(crate) fn waiter(arguments: &[String]) {
    let log = Options::new().open(&arguments[0]).unwrap();
    say("ready");
    let error = loop {
        if let Err(error) = log.append_durable(&[1; 100]) {
            break error;
        }
    };
    say(&format!("{:?} {:?}", error.kind(), error.raw_os_error()));
    hear();
}

#[test]
fn a_failed_write_reaches_every_waiting_process_and_reopening_recovers() {
    let test = "a_failed_write_reaches_every_waiting_process_and_reopening_recovers";
    for fill in [Fill::Staged, Fill::Pwrite] {
        // Thin: the filesystem believes in more blocks than its disk has.
        let Some(disk) = Mount::tmpfs(test, 12) else { return };
        let Some(thin) = Mount::ext4_on(test, &disk.path().join("image"), 64) else { return };
        let place = thin.path().join("log");
        let options = Options::new().fill(fill).segment_capacity_bytes(64 << 10);
        let log = options.open(&place).unwrap();
        let before = payload(Layout::Framed, 1, 1000);
        log.append_durable(&before).unwrap();
        let mut children: Vec<_> =
            (0..3).map(|_| Child::start("waiter", &[place.to_str().unwrap()])).collect();
        children.iter_mut().for_each(|child| child.expect("ready"));
        // Takes what is left of the disk.
        let hog = disk.path().join("hog");
        std::fs::write(&hog, vec![1; 16 << 20]).unwrap_err();
        let error = loop {
            if let Err(error) = log.append_durable(&payload(Layout::Framed, 2, 30_000)) {
                break error;
            }
        };
        assert!(
            matches!(error.kind(), ErrorKind::Poisoned | ErrorKind::Io | ErrorKind::NoSpace),
            "{error}"
        );
        if error.kind() != ErrorKind::Poisoned {
            // The failure came while a segment was prepared: refused, and nothing promised.
            assert!(error.path().is_some());
            children.into_iter().for_each(Child::kill);
            continue;
        }
        assert!(error.raw_os_error().is_some() && error.path().is_some(), "{error}");
        for child in &mut children {
            let said = child.hears().unwrap();
            assert!(said.starts_with("Poisoned Some("), "{said}");
        }
        assert_eq!(log.append(b"more").unwrap_err().kind(), ErrorKind::Poisoned);
        assert_eq!(log.sync().unwrap_err().kind(), ErrorKind::Poisoned);
        assert!(log.stat().unwrap().poison.is_some());
        assert_eq!(Options::new().open(&place).unwrap_err().kind(), ErrorKind::Poisoned);
        children.into_iter().for_each(Child::kill);
        let durable = log.durable();
        drop(log);
        std::fs::remove_file(&hog).unwrap();
        let log = Options::new().open(&place).unwrap();
        assert!(log.published() >= durable, "nothing committed is lost");
        assert_eq!(read_all(&log)[0].1, before);
        log.append_durable(b"more").unwrap();
    }
}
