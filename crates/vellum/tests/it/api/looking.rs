//! A process that only looks leaves every time stamp as it is.

use std::fs::{self, File, FileTimes};
use std::time::{Duration, SystemTime};

use vellum::{Lsn, Options};

use crate::support::{LAYOUTS, payload, place, scratch, small};

#[test]
fn looking_changes_no_time() {
    for layout in LAYOUTS {
        let dir = scratch();
        let log = small(layout).open(place(&dir)).unwrap();
        for seed in 0..20 {
            log.append(&payload(layout, seed, 500)).unwrap();
        }
        log.cursor("reader", Lsn::ZERO).unwrap();
        log.sync().unwrap();
        drop(log);
        let entries = fs::read_dir(place(&dir)).unwrap().map(|entry| entry.unwrap().path());
        let mut files: Vec<_> = entries.filter(|path| !path.is_symlink()).collect();
        files.push(place(&dir));
        // Older than a day, so that the kernel would note the next access.
        let long_ago = SystemTime::now() - Duration::from_secs(3 * 86_400);
        for path in &files {
            File::open(path).unwrap().set_times(FileTimes::new().set_accessed(long_ago)).unwrap();
        }
        let view = Options::default().read_only(true).open(place(&dir)).unwrap();
        let mut reader = view.reader(Lsn::ZERO).unwrap();
        while reader.next().unwrap().is_some() {}
        view.stat().unwrap();
        view.verify().unwrap();
        for path in &files {
            let accessed = path.metadata().unwrap().accessed().unwrap();
            assert_eq!(accessed, long_ago, "{}", path.display());
        }
    }
}
