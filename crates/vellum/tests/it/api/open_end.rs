//! Readers that keep up with the writers of a mapped log: they copy from a mapping and not by
//! system call.

use vellum::{ErrorKind, Fill, Log, Lsn, Options, Tuning};

use crate::support::{LAYOUTS, place, scratch, segment_files, small};

const RECORDS: u64 = 1000;

/// Reads by system call that this thread has made so far.
fn reads() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/io").unwrap();
    let count = text.lines().find_map(|line| line.strip_prefix("syscr: ")).unwrap();
    count.parse().unwrap()
}

fn reads_for(log: &Log) -> u64 {
    let mut reader = log.reader(Lsn::ZERO).unwrap();
    let before = reads();
    for index in 0..RECORDS {
        let line = format!("record {index}\n");
        log.append(line.as_bytes()).unwrap();
        assert_eq!(reader.next().unwrap().unwrap().payload, line.as_bytes());
    }
    reads() - before
}

#[test]
fn a_reader_at_the_end_of_a_mapped_log_makes_no_system_call_for_a_record() {
    for layout in LAYOUTS {
        let dir = scratch();
        let options = vellum::internal::options(layout).tuning(Tuning::new().fill(Fill::Mapped));
        let mapped = reads_for(&options.open(dir.path().join("mapped")).unwrap());
        assert!(mapped < RECORDS / 10, "{layout:?}: {mapped} reads");
    }
    let dir = scratch();
    let options = Options::mapped_text().tuning(Tuning::new().fill(Fill::Pwrite));
    let written = reads_for(&options.open(place(&dir)).unwrap());
    assert!(written >= RECORDS, "that can be counted: {written}");
}

#[test]
fn a_reader_at_the_end_finds_every_record_across_segments_and_stretches() {
    for layout in LAYOUTS {
        let dir = scratch();
        let (short, long) = (small(layout), vellum::internal::options(layout));
        for (index, (options, records)) in [(short, 300), (long, 4000)].into_iter().enumerate() {
            let log = options
                .tuning(Tuning::new().fill(Fill::Mapped))
                .open(dir.path().join(index.to_string()))
                .unwrap();
            let mut reader = log.reader(Lsn::ZERO).unwrap();
            // In the long one more than is mapped at a time.
            for number in 0..records {
                let mut line = vec![b'a' + (number % 26) as u8; number * 7 % 3000 + 1];
                line.push(b'\n');
                let lsn = log.append(&line).unwrap();
                let record = reader.next().unwrap().unwrap();
                assert!(record.lsn == lsn && record.payload == line, "{layout:?} {number}");
            }
            assert_eq!(reader.next().unwrap(), None);
        }
    }
}

#[test]
fn a_file_that_somebody_has_cut_is_an_error_of_the_reader() {
    for layout in LAYOUTS {
        let dir = scratch();
        let log = small(layout).tuning(Tuning::new().fill(Fill::Mapped)).open(place(&dir)).unwrap();
        let mut reader = log.reader(Lsn::ZERO).unwrap();
        log.append(b"a record\n").unwrap();
        let segment = &segment_files(&place(&dir))[0];
        std::fs::OpenOptions::new().write(true).open(segment).unwrap().set_len(0).unwrap();
        assert_eq!(reader.next().unwrap_err().kind(), ErrorKind::Corrupt, "{layout:?}");
    }
}
