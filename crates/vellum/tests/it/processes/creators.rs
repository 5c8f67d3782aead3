//! Many processes that find no log and make one at the same moment.

use vellum::{Layout, Options};

use crate::support::child::{self, Child};
use crate::support::{LAYOUTS, assert_sound, payloads, place, scratch, small};

const CREATORS: usize = 8;
const RECORDS: usize = 50;

pub(crate) fn create_and_append(arguments: &[String]) {
    let [path, layout, name] = arguments else { panic!("three arguments") };
    child::say("ready");
    child::hear();
    let layout: Layout = layout.parse().unwrap();
    let log = small(layout).open(path).unwrap();
    for index in 0..RECORDS {
        log.append(format!("{name} {index}\n").as_bytes()).unwrap();
    }
}

/// Opens, appends, says so.
pub(crate) fn append_a_few(arguments: &[String]) {
    let log = Options::default().open(&arguments[0]).unwrap();
    for index in 0..10 {
        log.append(format!("{} {index}\n", arguments[1]).as_bytes()).unwrap();
    }
    child::say("done");
}

#[test]
fn creators_at_the_same_moment_make_one_log() {
    for round in 0..6 {
        let layout = LAYOUTS[round % 2];
        let dir = scratch();
        let (path, layout_name) = (place(&dir), layout.to_string());
        let start = |name: usize| {
            let name = name.to_string();
            let arguments = [path.to_str().unwrap(), &layout_name, &name];
            let mut creator = Child::start("create and append", &arguments);
            creator.expect("ready");
            creator
        };
        let mut creators: Vec<Child> = (0..CREATORS).map(start).collect();
        creators.iter_mut().for_each(|creator| creator.tell("go"));
        creators.into_iter().for_each(Child::finish_well);
        let log = Options::default().open(&path).unwrap();
        let mut next = [0; CREATORS];
        for line in payloads(&log) {
            let line = String::from_utf8(line).unwrap();
            let (name, index) = line.trim_end().split_once(' ').unwrap();
            let next = &mut next[name.parse::<usize>().unwrap()];
            assert_eq!(index.parse::<usize>().unwrap(), *next, "in order, once");
            *next += 1;
        }
        assert_eq!(next, [RECORDS; CREATORS]);
        assert_sound(&log);
    }
}

#[test]
fn a_creator_killed_at_any_moment_is_followed_by_another() {
    for round in 0..30 {
        let layout = LAYOUTS[round % 2];
        let dir = scratch();
        let (path, layout_name) = (place(&dir), layout.to_string());
        let arguments = [path.to_str().unwrap(), &layout_name, "first"];
        let mut first = Child::start("create and append", &arguments);
        first.expect("ready");
        first.tell("go");
        // Killed a different number of instructions later in each round.
        for turn in 0..round * 2000 {
            std::hint::black_box(turn);
        }
        first.kill();
        let log = small(layout).open(&path).unwrap();
        let lsn = log.append(b"second\n").unwrap();
        let last = payloads(&log).pop();
        assert_eq!(last.as_deref(), Some(b"second\n".as_slice()), "round {round}");
        assert!(log.published() > lsn);
        assert_sound(&log);
    }
}
