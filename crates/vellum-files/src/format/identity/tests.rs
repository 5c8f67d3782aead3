use super::*;

const ID: LogId = LogId::from_bytes([9; 16]);

fn resolve(identity: &Identity, epoch: u64, lsn: u64) -> Result<u64, ErrorKind> {
    let position = Position { log: ID, epoch, lsn: Lsn::new(lsn) };
    let resolved = identity.resolve(position, Meaning::Record);
    resolved.map(Lsn::get).map_err(|error| error.kind())
}

fn rewound(rewinds: &[(u64, u64)]) -> Identity {
    let mut identity = Identity::new(ID, 5);
    rewinds.iter().for_each(|(lsn, step)| identity.rewind(Lsn::new(*lsn), *step));
    identity
}

#[test]
fn a_block_comes_back_as_it_was_written_and_a_damaged_one_not_at_all() {
    let mut identity = rewound(&[(100, 1), (200, 1 << 40)]);
    identity.note_checkpoint(CutCheckpoint { at: Lsn::new(8), checkpoint: Lsn::new(7) });
    for recovery in [
        None,
        Some(Recovery {
            end: Lsn::new(1),
            durable: Lsn::new(2),
            cut_bytes: 3,
            padded_bytes: 4,
            from: Lsn::new(5),
            reason: RecoveryReason::StageLost,
            time: SystemTime::UNIX_EPOCH + Duration::from_secs(6),
        }),
    ] {
        identity.recovery = recovery;
        assert_eq!(Copy::parse(&identity.to_bytes()), Copy::Whole(identity.clone()));
    }
    // A lost range takes the place of a rewind.
    (3..=20).for_each(|number| identity.rewind(Lsn::new(100 * number), 1));
    identity.lose(Lsn::new(300), Lsn::new(400));
    assert_eq!(Copy::parse(&identity.to_bytes()), Copy::Whole(identity.clone()));
    identity.rewind(Lsn::new(9000), 1);
    assert_eq!(Copy::parse(&identity.to_bytes()), Copy::Whole(identity.clone()));
    let whole = identity.to_bytes();
    for bit in 0..whole.len() * 8 {
        let mut bytes = whole;
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(Copy::parse(&bytes), Copy::Damaged, "bit {bit}");
    }
    for len in 0..whole.len() {
        let expected = if len == 0 { Copy::Absent } else { Copy::Damaged };
        assert_eq!(Copy::parse(&whole[..len]), expected, "{len} bytes");
    }
    assert_eq!(Copy::in_file(&[0; 4096]), Copy::Absent);
}

#[test]
fn a_position_holds_up_to_the_smallest_rewind_since() {
    let identity = rewound(&[(500, 1), (900, 1), (700, 1)]);
    let differs = Err(ErrorKind::Rewound);
    // Epoch 1 was ended at 500, 2 and 3 at 700.
    for (epoch, lsn, answer) in [
        (1, 499, Ok(499)),
        (1, 500, differs),
        (2, 699, Ok(699)),
        (2, 700, differs),
        (3, 699, Ok(699)),
        (3, 800, differs),
        (4, 5000, Ok(5000)),
        (5, 100, differs),
        (0, 100, differs),
    ] {
        assert_eq!(resolve(&identity, epoch, lsn), answer, "{epoch}/{lsn}");
    }
    let next = Position { log: ID, epoch: 1, lsn: Lsn::new(500) };
    assert_eq!(identity.resolve(next, Meaning::Next).unwrap(), next.lsn);
    let error = identity.resolve(next, Meaning::Record).unwrap_err();
    assert_eq!((error.kind(), error.lsn()), (ErrorKind::Rewound, Some(Lsn::new(500))));
    let other = Position { log: LogId::from_bytes([8; 16]), ..next };
    let error = identity.resolve(other, Meaning::Next).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OtherLog);
    assert!(error.to_string().contains(&ID.to_string()), "{error}");
}

#[test]
fn a_rewind_that_a_later_one_covers_is_forgotten() {
    let identity = rewound(&[(900, 1), (700, 1), (800, 1)]);
    let left: Vec<u64> = identity.rewinds.iter().map(|rewind| rewind.lsn).collect();
    assert_eq!(left, [700, 800]);
}

#[test]
fn epochs_of_another_copy_are_refused_even_after_later_truncations() {
    let identity = rewound(&[(500, 1), (900, 1000), (600, 1)]);
    assert_eq!(identity.epoch, 1003);
    for epoch in [3, 500, 1001] {
        assert_eq!(resolve(&identity, epoch, 10), Err(ErrorKind::Rewound), "{epoch}");
    }
    assert_eq!(resolve(&identity, 2, 599), Ok(599));
    assert_eq!(resolve(&identity, 2, 600), Err(ErrorKind::Rewound));
    assert_eq!(resolve(&identity, 1002, 599), Ok(599));
}

/// Which records were at which positions, in two lines of one log, against what it says of them.
#[test]
fn whatever_happens_a_position_never_resolves_to_another_record() {
    for seed in 1..300_u64 {
        let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut below = |limit: u64| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random % limit
        };
        // A line: its identity, and the number of the record at each position.
        let mut lines = vec![(Identity::new(ID, 0), Vec::<u64>::new())];
        let mut taken: Vec<(u64, u64, u64)> = Vec::new();
        for number in 0..400 {
            let chosen = below(lines.len() as u64) as usize;
            match below(12) {
                0 => {
                    let (identity, records) = &mut lines[chosen];
                    let lsn = below(records.len() as u64 + 1);
                    records.truncate(lsn as usize);
                    identity.rewind(Lsn::new(lsn), 1);
                }
                1 if lines.len() < 4 => {
                    let (mut identity, mut records) = lines[chosen].clone();
                    let lsn = below(records.len() as u64 + 1);
                    records.truncate(lsn as usize);
                    identity.rewind(Lsn::new(lsn), (1 << 32) + below(1 << 32));
                    lines.push((identity, records));
                }
                _ => {
                    let (identity, records) = &mut lines[chosen];
                    taken.push((identity.epoch, records.len() as u64, number));
                    records.push(number);
                }
            }
        }
        for (identity, records) in &lines {
            for (epoch, lsn, number) in &taken {
                if let Ok(lsn) = resolve(identity, *epoch, *lsn) {
                    assert_eq!(records.get(lsn as usize), Some(number), "seed {seed}");
                }
            }
            let newest = resolve(identity, identity.epoch, records.len() as u64);
            assert!(newest.is_ok(), "seed {seed}");
        }
    }
}
