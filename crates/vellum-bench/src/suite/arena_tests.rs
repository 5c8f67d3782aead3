//! The turns of entrants, the excluded ones, and their samples.

use super::*;
use crate::report::Better;

#[derive(Default)]
struct Listener(Vec<String>);

impl Progress for Listener {
    fn event(&mut self, event: &Event<'_>) {
        self.0.push(format!("{event:?}"));
    }
}

impl Listener {
    fn count(&self, event: &str) -> usize {
        self.0.iter().filter(|one| one.starts_with(event)).count()
    }
}

/// Three rounds, in which a way's turn comes to its letter, or to an error.
fn contest(probed: Result<()>, errors: [Option<(u32, Error)>; 2]) -> (Vec<Case>, Listener) {
    let dir = tempfile::tempdir().unwrap();
    let place = Place { dir: dir.path(), filesystem: "some", is_scratch: false };
    let (mut listener, mut warnings) = (Listener::default(), Vec::new());
    let mut arena = Arena::new(&place, 3, &mut listener, &mut warnings);
    let probes = [probed, Ok(()), Ok(())];
    let mut entrants: Vec<Entrant<usize, f64>> = probes
        .into_iter()
        .enumerate()
        .map(|(index, probed)| Entrant::new(index.to_string(), index, probed))
        .collect();
    let measure = |way: &mut usize, turn: Turn<'_>| {
        assert_eq!(std::fs::read_dir(turn.dir).unwrap().count(), 0);
        std::fs::write(turn.dir.join("file"), "text").unwrap();
        assert_eq!(*way, turn.index);
        match way.checked_sub(1).and_then(|index| errors[index].clone()) {
            Some((round, error)) if round == turn.round => Err(error),
            _ => Ok(f64::from(turn.round)),
        }
    };
    arena.rounds(&mut entrants, measure).unwrap();
    let case = |entrant: &Entrant<usize, f64>| {
        let samples = entrant.figures(|sample| *sample);
        entrant.case(arena.case("table").metric("round", "", Better::Neither, samples))
    };
    let cases = entrants.iter().map(case).collect();
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "a turn leaves nothing");
    (cases, listener)
}

#[test]
fn all_take_turns_and_the_warm_up_is_not_counted() {
    let (cases, listener) = contest(Ok(()), [None, None]);
    for case in &cases {
        assert!(case.verified && case.reason().is_none(), "{case:?}");
        assert_eq!(case.metrics[0].samples, [1.0, 2.0, 3.0]);
        assert_eq!(case.value("filesystem"), Some("some"));
    }
    assert_eq!((listener.count("Measuring"), listener.count("Omitted")), (12, 0));
    assert!(listener.0[0].contains("some, 0, warm-up") && listener.0[4].contains("2, round 1"));
}

#[test]
fn each_comes_at_each_place_and_behind_each_other_one_equally_often() {
    for count in 1..12_usize {
        let (mut at, mut behind) = (vec![vec![0; count]; count], vec![vec![0; count]; count]);
        for round in 0..2 * count as u32 {
            let turns: Vec<usize> = order(round, count).collect();
            turns.iter().enumerate().for_each(|(place, one)| at[place][*one] += 1);
            turns.windows(2).for_each(|pair| behind[pair[1]][pair[0]] += 1);
        }
        assert!(at.iter().flatten().all(|times| *times == 2), "{count}: {at:?}");
        for (one, before) in behind.iter().enumerate() {
            let expected: Vec<u32> = (0..count).map(|other| 2 * u32::from(other != one)).collect();
            assert_eq!(*before, expected, "{count} entrants, before {one}");
        }
    }
}

#[test]
fn who_fails_has_no_numbers_and_does_not_stop_the_others() {
    let failed = Some((2, Error::failed("the pen is dry")));
    let unsupported = Some((0, Error::unsupported("no such call")));
    let (cases, listener) = contest(Err(Error::unsupported("not here")), [failed, unsupported]);
    let ends: Vec<_> = cases.iter().map(|case| (case.verdict(), case.reason())).collect();
    let expected = [
        ("skipped", Some("not here")),
        ("FAILED", Some("the pen is dry")),
        ("skipped", Some("no such call")),
    ];
    assert_eq!(ends, expected);
    assert!(cases.iter().all(|case| !case.verified && case.metrics.is_empty()));
    assert_eq!(listener.count("Measuring"), 3 + 1);
    assert_eq!(listener.count("Omitted"), 4 + 1 + 3);
    assert_eq!(listener.count("Warning"), 2);
}

#[test]
fn what_could_be_done_once_has_failed_if_it_can_be_done_no_more() {
    let (cases, _) = contest(Ok(()), [Some((1, Error::unsupported("no more"))), None]);
    assert_eq!((cases[1].verdict(), cases[2].verdict()), ("FAILED", "yes"));
}
