//! A disk that takes its time for one request answers others meanwhile, and two disks of a process
//! do not know each other.

use std::thread;

use super::support::{Cage, is_possible};

const ATTEMPTS: usize = 20;

#[test]
fn reads_are_answered_while_a_flush_waits() {
    if !is_possible() {
        return;
    }
    let cage = Cage::new("slow-flush", &["flush=200ms"]);
    // The file itself: the kernel's loop device asks for nothing while it waits for a flush.
    for _ in 0..ATTEMPTS {
        let before = cage.figures().flushes.count;
        let probe = cage.probe_of_file();
        let flush = thread::spawn(move || probe.flush().unwrap());
        while cage.figures().flushes.count == before {
            thread::yield_now();
        }
        cage.probe_of_file().read(0).unwrap();
        let figures = cage.figures();
        flush.join().unwrap();
        if figures.overlapping > 0 {
            assert_eq!(figures.reads.delayed_max.as_nanos(), 0);
            return;
        }
    }
    panic!("no read came while a flush waited");
}

#[test]
fn disks_of_one_process_come_and_go_in_any_order() {
    if !is_possible() {
        return;
    }
    let mut cages: Vec<Cage> = (0..3).map(|_| Cage::new("sound", &[])).collect();
    cages.iter().for_each(|cage| cage.probe().commit(3));
    cages.remove(0);
    cages.push(Cage::new("sound", &[]));
    cages.remove(1);
    cages.iter().for_each(|cage| cage.probe().commit(3));
    assert!(cages[0].dir.path().join("disk").exists());
}
