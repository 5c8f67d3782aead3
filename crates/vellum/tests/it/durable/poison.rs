//! A device that fails, for real: a filesystem on a loop device whose own disk is full.

use std::io::Write;

use vellum::{ErrorKind, Fill, Layout, Lsn, Options};

use crate::support::child::{Child, hear, say};
use crate::support::mount::Mount;
use crate::support::{PATIENCE, payload, read_all, segment_files, until};

/// Appends, commits when told to, and says how that failed.
pub(crate) fn waiter(arguments: &[String]) {
    let log = Options::new().open(&arguments[0]).unwrap();
    let lsn = log.append(&[1; 10_000]).unwrap();
    say("ready");
    hear();
    let error = log.commit(lsn).unwrap_err();
    say(&format!("{:?} {:?}", error.kind(), error.raw_os_error()));
    hear();
}

#[test]
fn a_failed_write_reaches_every_waiting_process_and_reopening_recovers() {
    let test = "a_failed_write_reaches_every_waiting_process_and_reopening_recovers";
    for fill in [Fill::Staged, Fill::Pwrite] {
        // Thin: the filesystem believes in more blocks than its disk has.
        let Some(disk) = Mount::tmpfs(test, 24) else { return };
        let image = disk.path().join("image");
        let Some(thin) = Mount::ext4_on(test, &image, 64) else { return };
        let place = thin.path().join("log");
        let options = Options::new().fill(fill).segment_capacity_bytes(1 << 20);
        let log = options.open(&place).unwrap();
        let before = payload(Layout::Framed, 1, 9000);
        log.append_durable(&before).unwrap();
        let view = Options::new().read_only(true).open(&place).unwrap();
        let mut followers = [&log, &view].map(|log| log.reader(Lsn::ZERO).unwrap().durable());
        // As long as it is held, commits of what lies behind wait.
        let mut held = log.reserve(700_000).unwrap();
        held.write_all(&[2; 700_000]).unwrap();
        let mut children: Vec<_> =
            (0..3).map(|_| Child::start("waiter", &[place.to_str().unwrap()])).collect();
        children.iter_mut().for_each(|child| child.expect("ready"));
        let commits = || log.stat().unwrap().commits.commits;
        let commits_before = commits();
        children.iter_mut().for_each(|child| child.tell("commit"));
        until("all wait", || (commits() == commits_before + 3).then_some(()));

        // Takes what is left of the disk.
        let hog = disk.path().join("hog");
        std::fs::write(&hog, vec![1; 24 << 20]).unwrap_err();
        // What a staged log writes to has been written before.
        let offset = 4096 + log.durable().get() - log.begin().get();
        Mount::forget_blocks(&image, &segment_files(&place)[0], offset / 4096 * 4096);
        let mut rest = std::fs::File::create(disk.path().join("rest")).unwrap();
        while rest.write(&[1; 4096]).is_ok() {}
        held.publish().unwrap();

        for child in &mut children {
            let said = child.hears().unwrap_or_else(|| panic!("{fill}: nothing failed"));
            assert!(said.starts_with("Poisoned Some("), "{fill}: {said}");
        }
        let error = log.commit(Lsn::new(log.published().get() - 1)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Poisoned, "{fill}");
        assert!(error.raw_os_error().is_some() && error.path().is_some(), "{error}");
        assert_eq!(log.append(b"more").unwrap_err().kind(), ErrorKind::Poisoned);
        assert_eq!(log.sync().unwrap_err().kind(), ErrorKind::Poisoned);
        assert!(log.stat().unwrap().poison.is_some());
        assert_eq!(Options::new().open(&place).unwrap_err().kind(), ErrorKind::Poisoned);
        for follower in &mut followers {
            assert_eq!(follower.follow(None).unwrap().unwrap().payload, before);
            assert_eq!(follower.next().unwrap(), None);
            assert_eq!(follower.follow(None).unwrap_err().kind(), ErrorKind::Poisoned);
        }
        let newest = Lsn::new(log.published().get() - 1);
        assert_eq!(view.wait_durable(newest, None).unwrap_err().kind(), ErrorKind::Poisoned);
        children.into_iter().for_each(Child::kill);
        let durable = log.durable();
        let [follower, mut reader] = followers;
        drop((log, follower));
        drop(rest);
        std::fs::remove_file(&hog).unwrap();
        std::fs::remove_file(disk.path().join("rest")).unwrap();
        let log = Options::new().open(&place).unwrap();
        assert!(log.published() >= durable, "nothing committed is lost");
        assert_eq!(read_all(&log)[0].1, before);
        log.append_durable(b"more").unwrap();
        // Who only reads goes on where it was: what had failed has been recovered.
        while reader.follow(Some(PATIENCE)).unwrap().expect("in time").payload != b"more" {}
    }
}
