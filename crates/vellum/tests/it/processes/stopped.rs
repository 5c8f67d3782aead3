//! A stopped process is not a dead one.

use std::io::Write;
use std::time::Duration;

use vellum::{ErrorKind, Lsn, Options};

use super::holds;
use crate::support::child::{self, Child};
use crate::support::{LAYOUTS, PATIENCE, assert_sound, payload, place, read_all, scratch, small};

/// Reserves, and publishes on command.
pub(crate) fn hold_a_reservation(arguments: &[String]) {
    let log = Options::default().open(&arguments[0]).unwrap();
    let len: usize = arguments[1].parse().unwrap();
    let mut reservation = log.reserve(len).unwrap();
    reservation.write_all(&payload(log.layout(), 1, len)[..len / 2]).unwrap();
    child::say("holds");
    child::hear();
    reservation.write_all(&payload(log.layout(), 1, len)[len / 2..]).unwrap();
    reservation.publish().unwrap();
    child::say("published");
}

/// Appends on command, and says where.
pub(crate) fn append_on_command(arguments: &[String]) {
    let log = Options::default().open(&arguments[0]).unwrap();
    child::say("ready");
    while let Some(line) = child::hear() {
        let lsn = log.append(format!("{line}\n").as_bytes()).unwrap();
        child::say(&lsn.to_string());
    }
}

#[test]
fn a_stopped_process_is_waited_for_and_named_and_loses_nothing() {
    for layout in LAYOUTS {
        let dir = scratch();
        let log = small(layout).open(place(&dir)).unwrap();
        let path = place(&dir);
        let mut holder = Child::start("hold a reservation", &[path.to_str().unwrap(), "100"]);
        holder.expect("holds");
        holder.signal(libc::SIGSTOP);
        let pid = holder.pid() as u32;
        // `kill` returns before the process has stopped.
        crate::support::until("it is stopped", || {
            let stat = log.stat().unwrap();
            stat.participants.iter().any(|p| p.pid == pid && p.stopped).then_some(())
        });
        let held = log.published();
        // Over many segments, by this process and by another one.
        let mut other = Child::start("append on command", &[path.to_str().unwrap()]);
        other.expect("ready");
        let mut lsns = Vec::new();
        for index in 0..100 {
            lsns.push(log.append(&payload(layout, index, 200)).unwrap());
            other.tell("record");
            lsns.push(Lsn::new(other.hears().unwrap().parse().unwrap()));
        }
        let mut reader = log.reader(Lsn::ZERO).unwrap();
        assert_eq!(reader.follow(Some(Duration::from_millis(50))).unwrap(), None);
        // No time is long enough: every process that comes finds that others have waited for a day.
        holds::set_waited(&log, &holder, Duration::from_secs(86_400));
        assert_eq!(reader.follow(Some(Duration::from_millis(50))).unwrap(), None);
        let latest = *lsns.last().unwrap();
        let error = log.commit_within(latest, Duration::from_millis(50)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        drop(Options::default().open(&path).unwrap());
        other.tell("record");
        lsns.push(Lsn::new(other.hears().unwrap().parse().unwrap()));
        let stat = log.stat().unwrap();
        assert_eq!((stat.published, log.published(), stat.repairs), (held, held, 0));
        let blamed = stat.held_back_by().expect("somebody is to blame");
        assert_eq!((blamed.pid, blamed.alive, blamed.stopped), (pid, true, true));
        assert_eq!(blamed.in_flight[0].first_lsn, held);
        holder.signal(libc::SIGCONT);
        holder.tell("publish");
        holder.expect("published");
        let first = reader.follow(Some(PATIENCE)).unwrap().unwrap();
        assert!(first.payload == payload(layout, 1, 100));
        let found: Vec<Lsn> = read_all(&log)[1..].iter().map(|read| read.0).collect();
        assert_eq!(found, lsns);
        assert_sound(&log);
        other.finish_well();
        holder.finish_well();
    }
}

#[test]
fn a_process_that_is_killed_while_stopped_is_dead() {
    for layout in LAYOUTS {
        let dir = scratch();
        let log = small(layout).open(place(&dir)).unwrap();
        let path = place(&dir);
        let mut holder = Child::start("hold a reservation", &[path.to_str().unwrap(), "9000"]);
        holder.expect("holds");
        holder.signal(libc::SIGSTOP);
        let lsn = log.append(b"behind\n").unwrap();
        holder.kill();
        let mut reader = log.reader(lsn).unwrap();
        assert!(reader.follow(Some(PATIENCE)).unwrap().is_some());
        assert_eq!(log.stat().unwrap().repairs, 1);
        assert_sound(&log);
    }
}

/// A record whose append has returned is not seen yet, not even by its own process.
#[test]
fn a_record_is_waited_for_until_readers_see_it() {
    for layout in LAYOUTS {
        for is_killed in [false, true] {
            let dir = scratch();
            let log = small(layout).open(place(&dir)).unwrap();
            let view = Options::default().read_only(true).open(place(&dir)).unwrap();
            let path = place(&dir);
            let mut holder = Child::start("hold a reservation", &[path.to_str().unwrap(), "100"]);
            holder.expect("holds");
            let lsn = log.append(b"behind\n").unwrap();
            for handle in [&log, &view] {
                assert_eq!(handle.read_at(lsn).unwrap_err().kind(), ErrorKind::OutOfRange);
                let error =
                    handle.wait_published(lsn, Some(Duration::from_millis(50))).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::TimedOut);
                assert!(error.to_string().contains(&holder.pid().to_string()), "{error}");
                let error = handle.wait_published(log.tail(), None).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::OutOfRange);
            }
            if is_killed {
                holder.kill();
            } else {
                holder.tell("publish");
            }
            // The one that may not write first: nothing is padded for it.
            for handle in [&view, &log] {
                handle.wait_published(lsn, Some(PATIENCE)).unwrap();
                assert_eq!(handle.read_at(lsn).unwrap().payload, b"behind\n");
                handle.wait_published(lsn, Some(Duration::ZERO)).unwrap();
            }
            assert_eq!(log.stat().unwrap().repairs, u64::from(is_killed));
        }
    }
}
