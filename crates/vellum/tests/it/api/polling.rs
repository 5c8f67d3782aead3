//! Readers with a descriptor: a loop over `poll` sees everything, and is woken for it.

use rustix::event::{PollFd, PollFlags, epoll, poll};
use vellum::{ErrorKind, Log, Lsn, Options, PollableReader};

use crate::support::child::{Child, hear, say};
use crate::support::fork::{fork, wait_patiently};
use crate::support::{LAYOUTS, in_own_process, place, scratch, small};

/// The next record, by `poll` alone.
fn wait_for(reader: &mut PollableReader) -> Vec<u8> {
    loop {
        if let Some(record) = reader.next().unwrap() {
            return record.payload.to_vec();
        }
        poll(&mut [PollFd::new(reader, PollFlags::IN)], None).unwrap();
    }
}

/// Appends a line for each that it hears, and commits if asked to.
pub(crate) fn answerer(arguments: &[String]) {
    let log = Options::default().open(&arguments[0]).unwrap();
    say("ready");
    while let Some(line) = hear() {
        match arguments[1] == "commit" {
            true => log.append_durable(format!("{line}\n").as_bytes()).unwrap(),
            false => log.append(format!("{line}\n").as_bytes()).unwrap(),
        };
    }
}

fn pollable(log: &Log, is_durable: bool) -> PollableReader {
    let reader = log.reader(Lsn::ZERO).unwrap();
    if is_durable { reader.durable() } else { reader }.pollable().unwrap()
}

#[test]
fn a_loop_over_poll_sees_what_another_process_appends_or_commits() {
    for layout in LAYOUTS {
        for (is_durable, read_only) in [(false, false), (false, true), (true, false), (true, true)]
        {
            let dir = scratch();
            let _log = small(layout).open(place(&dir)).unwrap();
            let view = Options::default().read_only(read_only).open(place(&dir)).unwrap();
            let how = if is_durable { "commit" } else { "append" };
            let mut other = Child::start("answerer", &[place(&dir).to_str().unwrap(), how]);
            other.expect("ready");
            let mut reader = pollable(&view, is_durable);
            for round in 0..40 {
                other.tell(&round.to_string());
                assert_eq!(wait_for(&mut reader), format!("{round}\n").as_bytes());
            }
            other.kill();
        }
    }
}

/// The cause that makes the descriptor readable: 1 is another process, 2 the timer.
fn cause(reader: &PollableReader) -> u64 {
    let mut events = Vec::with_capacity(2);
    epoll::wait(reader, rustix::buffer::spare_capacity(&mut events), None).unwrap();
    events.iter().map(|event| event.data.u64()).min().unwrap()
}

#[test]
fn who_polls_is_woken_and_does_not_just_look_again() {
    for layout in LAYOUTS {
        for is_durable in [false, true] {
            let dir = scratch();
            let log = small(layout).open(place(&dir)).unwrap();
            let mut reader = pollable(&log, is_durable);
            // On a busy machine the timer may come first. Without any wake-up, it always would.
            let is_woken = |_| {
                while reader.next().unwrap().is_some() {}
                let lsn = log.append(b"wake up\n").unwrap();
                if is_durable {
                    log.commit(lsn).unwrap();
                }
                cause(&reader) == 1
            };
            assert!((0..200).any(is_woken), "{layout}, {is_durable}");
        }
    }
}

#[test]
fn nothing_that_came_before_the_descriptor_is_missed() {
    for layout in LAYOUTS {
        let dir = scratch();
        let log = small(layout).open(place(&dir)).unwrap();
        log.append(b"there\n").unwrap();
        let mut reader = pollable(&log, false);
        poll(&mut [PollFd::new(&reader, PollFlags::IN)], None).unwrap();
        assert_eq!(wait_for(&mut reader), b"there\n");
        let mut reader = reader.into_reader();
        log.append(b"behind\n").unwrap();
        assert_eq!(reader.next().unwrap().unwrap().payload, b"behind\n");
    }
}

#[test]
fn a_forked_child_is_told_to_make_a_reader_of_its_own() {
    in_own_process(|| {
        let dir = scratch();
        let log = small(vellum::Layout::Framed).open(place(&dir)).unwrap();
        let mut reader = pollable(&log, false);
        assert_eq!(reader.next().unwrap(), None);
        let child = fork(|| {
            assert_eq!(reader.next().unwrap_err().kind(), ErrorKind::Unsupported);
            let mut own = pollable(&log, false);
            assert_eq!(own.next().unwrap(), None);
            log.append(b"of the child\n").unwrap();
            assert_eq!(wait_for(&mut own), b"of the child\n");
            0
        });
        assert_eq!(wait_for(&mut reader), b"of the child\n");
        assert_eq!(wait_patiently(child), Some(0));
    });
}
