//! The log's id, its epochs, and positions that are stored outside of it: after power cuts,
//! truncations, copies and damage a position means the same record or is refused.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;

use tempfile::TempDir;
use vellum::stat::RecoveryReason;
use vellum::{ErrorKind, Layout, Log, Lsn, Options, Position};

use super::{after_power_cut, in_another_boot, kinds, staged};
use crate::support::{
    Numbers, adopt_control, become_nobody, copy_log, fork, in_own_process, is_root, memory_scratch,
    open_to_all, payload, place, scratch,
};

/// The LSN of the record that `position` was taken for.
fn resolve(log: &Log, position: Position) -> vellum::Result<Lsn> {
    log.reader_at(position).map(|reader| reader.position())
}

/// The LSN behind the handled record.
fn resolve_next(log: &Log, position: Position) -> vellum::Result<Lsn> {
    log.reader_at_next(position).map(|reader| reader.position())
}

/// Where the identity is in the geometry file and in the control file.
const BLOCK: std::ops::Range<usize> = 512..1024;

fn refusal(answer: vellum::Result<Lsn>) -> (ErrorKind, Option<Lsn>) {
    let error = answer.unwrap_err();
    (error.kind(), error.lsn())
}

#[test]
fn a_log_keeps_its_id_and_its_epoch_while_nothing_is_taken_back() {
    for options in kinds() {
        let dir = scratch();
        let log = options.open(place(&dir)).unwrap();
        let id = log.id().unwrap();
        assert_eq!((log.epoch(), log.recovery()), (1, None));
        let lsn = log.append_durable(b"one\n").unwrap();
        let position = log.position(lsn).unwrap();
        assert_eq!((position.log, position.epoch, position.lsn), (id, 1, lsn));
        let stat = log.stat().unwrap();
        assert_eq!((stat.log_id, stat.epoch, stat.last_recovery), (Some(id), 1, None));
        drop(log);
        for _ in 0..3 {
            let log = Options::default().open(place(&dir)).unwrap();
            let reader = Options::default().read_only(true).open(place(&dir)).unwrap();
            for log in [&log, &reader] {
                assert_eq!((log.id(), log.epoch()), (Some(id), 1));
                assert_eq!(resolve(log, position).unwrap(), lsn);
            }
        }
        let other = options.open(dir.path().join("other")).unwrap();
        assert_ne!(other.id(), Some(id));
        other.append(b"one\n").unwrap();
        let error = resolve(&other, position).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OtherLog);
        for id in [id, other.id().unwrap()] {
            assert!(error.to_string().contains(&id.to_string()), "{error}");
        }
    }
}

#[test]
fn a_truncation_ends_the_epoch_and_refuses_what_it_dropped() {
    for options in kinds() {
        let dir = scratch();
        let log = options.open(place(&dir)).unwrap();
        let lsns: Vec<_> =
            (0..9_u8).map(|index| log.append(&[b'a' + index, b'\n']).unwrap()).collect();
        let taken: Vec<_> = lsns.iter().map(|lsn| log.position(*lsn).unwrap()).collect();
        let reader = Options::default().read_only(true).open(place(&dir)).unwrap();
        let mut behind = reader.reader(lsns[8]).unwrap();
        behind.next().unwrap().unwrap();
        let end = behind.position();
        let mut before = reader.reader(lsns[2]).unwrap();
        log.truncate(lsns[5]).unwrap();
        assert_eq!(log.epoch(), 2);
        // Other records, up to the same end: nothing but the epoch tells.
        (5..9_u8).for_each(|index| assert_eq!(log.append(b"z\n").unwrap(), lsns[index as usize]));
        assert_eq!(log.published(), end);
        log.append(b"more\n").unwrap();
        for log in [&log, &reader] {
            for (position, index) in taken.iter().zip(0..) {
                let answer = resolve(log, *position);
                match index < 5 {
                    true => assert_eq!(answer.unwrap(), lsns[index]),
                    false => assert_eq!(refusal(answer), (ErrorKind::Rewound, Some(lsns[5]))),
                }
            }
            let next = resolve_next(log, taken[5]);
            assert_eq!(next.unwrap(), lsns[5], "all before is what it was");
            assert_eq!(refusal(resolve_next(log, taken[6])), (ErrorKind::Rewound, Some(lsns[5])));
        }
        assert_eq!(resolve(&log, log.position(lsns[7]).unwrap()).unwrap(), lsns[7]);
        // A handle that was opened before gives out what is refused, and never what is wrong.
        assert!(resolve(&reader, reader.position(lsns[7]).unwrap()).is_err());
        assert_eq!(behind.next().unwrap_err().kind(), ErrorKind::OutOfRange);
        let mut count = 0;
        while before.next().unwrap().is_some() {
            count += 1;
        }
        assert_eq!(count, 8);
        let position = before.position_of(lsns[8]).unwrap();
        assert_eq!(resolve(&reader, position).unwrap(), lsns[8]);
        drop((log, reader));
        let log = Options::default().open(place(&dir)).unwrap();
        assert_eq!((log.epoch(), refusal(resolve(&log, taken[8])).0), (2, ErrorKind::Rewound));
    }
}

#[test]
fn a_position_in_the_middle_of_a_record_is_refused() {
    for options in kinds() {
        let dir = scratch();
        let log = options.open(place(&dir)).unwrap();
        let lines: Vec<_> =
            (0..400).map(|seed| payload(log.layout(), seed, 100 + seed as usize % 40)).collect();
        let lsns: Vec<_> = lines.iter().map(|line| log.append(line).unwrap()).collect();
        let mut reader = log.reader(Lsn::ZERO).unwrap();
        for (lsn, line) in lsns.iter().zip(&lines) {
            let record = reader.next().unwrap().unwrap();
            let next = record.next_lsn;
            assert_eq!((record.lsn, record.payload), (*lsn, &line[..]));
            assert_eq!(resolve(&log, log.position(*lsn).unwrap()).unwrap(), *lsn);
            assert_eq!(resolve_next(&log, log.position(next).unwrap()).unwrap(), next);
            for offset in [1, 8, 50, line.len() as u64 - 1] {
                let inside = Lsn::new(lsn.get() + offset);
                assert_eq!(log.reader(inside).unwrap_err().kind(), ErrorKind::OutOfRange);
                let position = log.position(inside).unwrap();
                assert_eq!(refusal(resolve(&log, position)).0, ErrorKind::OutOfRange, "{inside}");
            }
        }
        if log.layout() == Layout::Framed {
            let abandoned = log.tail();
            drop(log.reserve(50).unwrap());
            log.append(b"behind").unwrap();
            let position = log.position(abandoned).unwrap();
            assert_eq!(refusal(resolve(&log, position)).0, ErrorKind::OutOfRange);
            assert_eq!(resolve_next(&log, position).unwrap(), abandoned);
        }
        log.trim(lsns[300]).unwrap();
        let error = resolve(&log, log.position(lsns[2]).unwrap()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Trimmed, "{error}");
        let error = resolve(&log, log.position(Lsn::MAX).unwrap()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutOfRange, "{error}");
    }
}

#[test]
fn a_damaged_copy_is_replaced_and_without_another_the_log_does_not_open() {
    for options in [staged(), kinds()[3].clone()] {
        let dir = memory_scratch();
        let log = options.open(place(&dir)).unwrap();
        let first = log.append_durable(b"first\n").unwrap();
        let lsn = log.append_durable(b"second\n").unwrap();
        let taken = [first, lsn].map(|lsn| log.position(lsn).unwrap());
        log.truncate(lsn).unwrap();
        let expected = (log.id(), log.epoch());
        drop(log);
        let check = |what: &str, spoil: &dyn Fn(&Path)| {
            let copy = memory_scratch();
            copy_log(&place(&dir), &place(&copy));
            adopt_control(&place(&copy));
            spoil(&place(&copy));
            for _ in 0..2 {
                let reader = Options::default().read_only(true).open(place(&copy)).unwrap();
                assert_eq!((reader.id(), reader.epoch()), expected, "{what}: to read");
                drop(reader);
                let log = Options::default().open(place(&copy)).unwrap();
                assert_eq!((log.id(), log.epoch()), expected, "{what}");
                assert_eq!(resolve(&log, taken[0]).unwrap(), first, "{what}");
                assert_eq!(refusal(resolve(&log, taken[1])).0, ErrorKind::Rewound, "{what}");
            }
            // Both are whole again.
            let files = ["geometry", "control"].map(|name| fs::read(place(&copy).join(name)));
            let blocks = files.map(|bytes| bytes.unwrap()[BLOCK].to_vec());
            assert!(blocks[0] == blocks[1] && blocks[0][..8] == *b"VELLUMID", "{what}");
        };
        for name in ["geometry", "control"] {
            for at in (BLOCK.start..BLOCK.end).step_by(7) {
                let garble = |log: &Path| {
                    let mut bytes = fs::read(log.join(name)).unwrap();
                    bytes[at] ^= 0x55;
                    write_in_place(&log.join(name), &bytes);
                };
                check(&format!("{name}, byte {at}"), &garble);
                let tear = |log: &Path| {
                    let mut bytes = fs::read(log.join(name)).unwrap();
                    bytes[at..BLOCK.end].fill(0);
                    write_in_place(&log.join(name), &bytes);
                };
                check(&format!("{name}, torn at byte {at}"), &tear);
            }
        }
        for len in (72..BLOCK.end as u64).step_by(19) {
            let cut = |log: &Path| {
                let file = File::options().write(true).open(log.join("geometry")).unwrap();
                file.set_len(len).unwrap();
            };
            check(&format!("geometry of {len} bytes"), &cut);
        }
        check("no geometry", &|log| fs::remove_file(log.join("geometry")).unwrap());
        let copy = memory_scratch();
        copy_log(&place(&dir), &place(&copy));
        for name in ["geometry", "control"] {
            let file =
                File::options().read(true).write(true).open(place(&copy).join(name)).unwrap();
            // Any byte may be there.
            let (mut byte, offset) = ([0], BLOCK.start as u64 + 30);
            file.read_exact_at(&mut byte, offset).unwrap();
            file.write_all_at(&[!byte[0]], offset).unwrap();
        }
        for options in [Options::default(), Options::default().read_only(true)] {
            let error = options.open(place(&copy)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        }
    }
}

fn write_in_place(path: &Path, bytes: &[u8]) {
    File::options().write(true).open(path).unwrap().write_all_at(bytes, 0).unwrap();
}

/// The moments of a change of the identity: before the first copy, between the copies, after.
#[test]
fn a_change_of_the_identity_counts_from_its_first_copy_on() {
    let dir = memory_scratch();
    let log = staged().open(place(&dir)).unwrap();
    let first = log.append_durable(b"first").unwrap();
    let lsn = log.append_durable(b"second").unwrap();
    let taken = log.position(log.published()).unwrap();
    let names = ["geometry", "control"];
    let before = names.map(|name| fs::read(place(&dir).join(name)).unwrap()[BLOCK].to_vec());
    log.truncate(lsn).unwrap();
    drop(log);
    for (old, epoch) in [(&[][..], 2), (&["control"], 2), (&["geometry"], 2), (&names, 1)] {
        let copy = memory_scratch();
        copy_log(&place(&dir), &place(&copy));
        adopt_control(&place(&copy));
        for (name, block) in names.iter().zip(&before).filter(|(name, _)| old.contains(name)) {
            let file = File::options().write(true).open(place(&copy).join(name)).unwrap();
            file.write_all_at(block, BLOCK.start as u64).unwrap();
        }
        let log = Options::default().open(place(&copy)).unwrap();
        assert_eq!(log.epoch(), epoch, "old: {old:?}");
        let is_rewound =
            resolve_next(&log, taken).is_err_and(|error| error.kind() == ErrorKind::Rewound);
        assert_eq!(is_rewound, epoch == 2, "old: {old:?}");
        assert_eq!(resolve(&log, Position { lsn: first, ..taken }).unwrap(), first);
    }
}

#[test]
fn a_recovery_is_remembered_with_its_reason_and_what_it_did() {
    for options in kinds() {
        let dir = scratch();
        let log = options.open(place(&dir)).unwrap();
        let layout = log.layout();
        let (one, two) = (payload(layout, 1, 400), payload(layout, 2, 400));
        let first = log.append_durable(&one).unwrap();
        let second = log.append(&two).unwrap();
        let taken = [first, second, log.tail()].map(|lsn| log.position(lsn).unwrap());
        let copy = after_power_cut(&place(&dir));
        adopt_control(&place(&copy));
        drop(log);
        if layout == Layout::Text {
            tear_line(&place(&copy), second, 250);
        }
        let log = Options::default().open(place(&copy)).unwrap();
        let recovery = log.recovery().unwrap();
        assert_eq!((recovery.reason, log.epoch()), (RecoveryReason::Reboot, 2));
        let is_gone = resolve(&log, taken[1]).is_err();
        match layout {
            Layout::Text => {
                assert_eq!((recovery.from, recovery.padded_bytes), (second, 1));
                assert_eq!(recovery.end.get(), second.get() + 251);
                assert!(is_gone);
                assert_eq!(refusal(resolve_next(&log, taken[2])).0, ErrorKind::Rewound);
            }
            _ => {
                assert_eq!((recovery.from, recovery.end), (log.tail(), log.tail()));
                assert_eq!(is_gone, recovery.end == second, "only what was staged is gone");
            }
        }
        assert_eq!(resolve(&log, taken[0]).unwrap(), first);
        drop(log);
        let reader = Options::default().read_only(true).open(place(&copy)).unwrap();
        assert_eq!(reader.recovery(), None);
        assert_eq!(reader.stat().unwrap().last_recovery, Some(recovery));
        drop(reader);
        fs::remove_file(place(&copy).join("control")).unwrap();
        let log = Options::default().open(place(&copy)).unwrap();
        let recovery = log.stat().unwrap().last_recovery.unwrap();
        assert_eq!(recovery.reason, RecoveryReason::ControlLost);
        assert_eq!(resolve(&log, taken[0]).unwrap(), first);
    }
}

#[test]
fn a_forked_child_gives_out_positions_and_one_that_may_only_read_resolves_them() {
    in_own_process(|| {
        let dir = scratch();
        open_to_all(dir.path());
        let log = Options::default().open(place(&dir)).unwrap();
        let lsn = log.append(b"the parent's").unwrap();
        let taken = log.position(lsn).unwrap();
        let child = fork::fork(|| {
            assert_eq!(resolve(&log, taken).unwrap(), lsn);
            let own = log.position(log.append(b"the child's").unwrap()).unwrap();
            assert_eq!((own.log, own.epoch), (taken.log, taken.epoch));
            i32::from(resolve(&log, own).is_err())
        });
        assert_eq!(fork::wait(child), 0);
        if !is_root("a_forked_child_gives_out_positions_and_one_that_may_only_read_resolves_them") {
            return;
        }
        // Of the two copies, this user may read one.
        let geometry = place(&dir).join("geometry");
        fs::set_permissions(geometry, fs::Permissions::from_mode(0o600)).unwrap();
        let child = fork::fork(|| {
            become_nobody();
            let reader = Options::default().read_only(true).open(place(&dir)).unwrap();
            i32::from(resolve(&reader, taken).unwrap() != lsn || reader.id() != log.id())
        });
        assert_eq!(fork::wait(child), 0);
    });
}

/// Cuts the newest text file in the middle of the line at `lsn`.
fn tear_line(log: &Path, lsn: Lsn, len: u64) {
    let files = crate::support::segment_files(log);
    let file = File::options().write(true).open(files.last().unwrap()).unwrap();
    file.set_len(lsn.get() % 16384 + len).unwrap();
}

#[test]
fn a_log_of_an_earlier_version_gets_its_id_when_it_is_opened_for_writing() {
    for options in kinds() {
        let dir = scratch();
        let log = options.open(place(&dir)).unwrap();
        let lsn = log.append_durable(b"old\n").unwrap();
        drop(log);
        let geometry = File::options().write(true).open(place(&dir).join("geometry")).unwrap();
        geometry.set_len(136).unwrap();
        let control = File::options().write(true).open(place(&dir).join("control")).unwrap();
        control.write_all_at(&[0; 512], 512).unwrap();
        let reader = Options::default().read_only(true).open(place(&dir)).unwrap();
        assert_eq!((reader.id(), reader.epoch()), (None, 0));
        assert_eq!(reader.position(lsn).unwrap_err().kind(), ErrorKind::Unsupported);
        let log = Options::default().open(place(&dir)).unwrap();
        let id = log.id();
        assert!(id.is_some());
        assert_eq!(resolve(&log, log.position(lsn).unwrap()).unwrap(), lsn);
        drop((log, reader));
        let reader = Options::default().read_only(true).open(place(&dir)).unwrap();
        assert_eq!((reader.id(), reader.epoch()), (id, 1));
    }
}

#[test]
fn an_application_tag_is_stored_and_another_is_refused() {
    let dir = scratch();
    let tagged = |tag| Options::default().application_tag(tag);
    let log = tagged(0xfeed).open(place(&dir)).unwrap();
    assert_eq!(log.stat().unwrap().application_tag, Some(0xfeed));
    log.append(b"a record").unwrap();
    drop(log);
    drop(tagged(0xfeed).open(place(&dir)).unwrap());
    drop(Options::default().open(place(&dir)).unwrap());
    in_another_boot(&place(&dir));
    for options in [tagged(0xbeef), tagged(0xbeef).read_only(true)] {
        let error = options.open(place(&dir)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidOption);
        let text = error.to_string();
        assert!(text.contains("feed") && text.contains("beef"), "{text}");
    }
    let log = tagged(0xfeed).open(place(&dir)).unwrap();
    fs::rename(place(&dir), dir.path().join("aside")).unwrap();
    let again = log.reopen().unwrap();
    assert_eq!(again.stat().unwrap().application_tag, Some(0xfeed));
    assert_ne!(again.id(), log.id());
    let saved = dir.path().join("saved");
    vellum::repair(dir.path().join("aside"), &saved).unwrap();
    let saved = tagged(0xfeed).open(saved).unwrap();
    assert_ne!(saved.id(), log.id());
    let plain = dir.path().join("plain");
    drop(Options::default().open(&plain).unwrap());
    let error = tagged(1).open(&plain).unwrap_err();
    assert!(error.to_string().contains("without application_tag"), "{error}");
    assert_eq!(tagged(0).open(&plain).unwrap_err().kind(), ErrorKind::InvalidOption);
}

/// One of the logs that came from the same log: its files, and whether a process has it open.
struct Line {
    dir: TempDir,
    log: Option<Log>,
}

impl Line {
    fn log(&mut self) -> &Log {
        self.log.get_or_insert_with(|| Options::default().open(place(&self.dir)).unwrap())
    }

    /// A power cut: the log's files as they are now, with damage behind the durable end.
    fn cut_power(&mut self, numbers: &mut Numbers, is_copy: bool) -> Line {
        let (layout, durable) = (self.log().layout(), self.log().durable());
        let end = self.log().tail();
        let dir = after_power_cut(&place(&self.dir));
        if !is_copy {
            adopt_control(&place(&dir));
        }
        for file in crate::support::segment_files(&place(&dir)) {
            spoil(&file, layout, durable, end, numbers);
        }
        Line { dir, log: None }
    }
}

/// Loses some sectors of a segment file behind the durable position.
fn spoil(path: &Path, layout: Layout, durable: Lsn, end: Lsn, numbers: &mut Numbers) {
    let name = path.file_stem().unwrap().to_str().unwrap();
    let name = name.strip_suffix("-more").unwrap_or(name);
    let digits = name.rsplit('-').next().unwrap();
    let first = u64::from_str_radix(digits, 16).unwrap();
    let header = if layout == Layout::Framed { 4096 } else { 0 };
    let file = File::options().write(true).open(path).unwrap();
    let len = file.metadata().unwrap().len();
    let from = (durable.get().max(first) - first).next_multiple_of(512);
    let to = end.get().clamp(first, first + 16384) - first;
    for sector in (from..to).step_by(512) {
        let at = header + sector;
        if at < len && numbers.next().is_multiple_of(4) {
            file.write_all_at(&vec![0; (len - at).min(512) as usize], at).unwrap();
        }
    }
}

/// Random appends, commits, truncations, trims, power cuts and copies: whatever was taken for a
/// record, in any of the logs, is in each of them that record or refused.
#[test]
fn a_position_is_the_same_record_or_refused_whatever_happens() {
    for options in kinds() {
        let mut held = 0;
        for seed in 0..8 {
            let mut numbers = Numbers::new(seed + 1);
            let dir = memory_scratch();
            let log = Some(options.open(place(&dir)).unwrap());
            let mut lines = vec![Line { dir, log }];
            let mut taken: Vec<(Position, Vec<u8>)> = Vec::new();
            for step in 0..120 {
                let (count, index) = (lines.len(), numbers.next() as usize % lines.len());
                let line = &mut lines[index];
                match numbers.next() % 24 {
                    0 => drop(line.log.take()),
                    1 | 2 => lines[index] = line.cut_power(&mut numbers, false),
                    3 if count < 3 => {
                        let copy = line.cut_power(&mut numbers, true);
                        lines.push(copy);
                    }
                    4 | 5 => {
                        let log = line.log();
                        let all = crate::support::read_all(log);
                        let from = all.get(numbers.next() as usize % (all.len() + 1));
                        let from = from.map_or(log.published(), |read| read.0);
                        log.truncate(from).unwrap();
                    }
                    6 | 7 => drop(line.log().sync().unwrap()),
                    8 => {
                        fs::remove_file(place(&line.dir).join("control")).unwrap_or_default();
                        let aside = memory_scratch();
                        copy_log(&place(&line.dir), &place(&aside));
                        lines[index] = Line { dir: aside, log: None };
                    }
                    9 => {
                        let log = line.log();
                        let all = crate::support::read_all(log);
                        if let Some((lsn, _)) = all.get(numbers.next() as usize % 50) {
                            log.trim(*lsn).unwrap();
                        }
                    }
                    _ => {
                        let log = line.log();
                        let len = 20 + numbers.next() as usize % 900;
                        let bytes = payload(log.layout(), 1000 * seed + step, len);
                        let lsn = log.append(&bytes).unwrap();
                        taken.push((log.position(lsn).unwrap(), bytes));
                    }
                }
            }
            for line in &mut lines {
                for (position, bytes) in &taken {
                    held += usize::from(holds(line.log(), *position, bytes, seed));
                }
            }
        }
        assert!(held > 100, "{held} positions hold");
    }
}

/// Whether a position holds; then it must be that of its record.
fn holds(log: &Log, position: Position, bytes: &[u8], seed: u64) -> bool {
    match log.reader_at(position) {
        Ok(mut reader) => {
            let record = reader.next().unwrap().expect("a record is there");
            let found = (record.lsn, record.payload);
            assert!(found == (position.lsn, bytes), "seed {seed}: {position} is something else");
            true
        }
        Err(error) => {
            let kinds = [ErrorKind::Rewound, ErrorKind::OutOfRange, ErrorKind::Trimmed];
            assert!(kinds.contains(&error.kind()), "seed {seed}: {error}");
            false
        }
    }
}
