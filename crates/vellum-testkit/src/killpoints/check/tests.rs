use super::super::scenario::Survivor;
use super::*;
use vellum::Preallocate;

const CASE: Case = Case {
    operation: Operation::Append,
    layout: Layout::Text,
    preallocate: Preallocate::Auto,
    fill: None,
    envelope: false,
    survivor: Survivor::Opener,
};

fn check(needs: &[Need], found: &[u32]) -> Result<(), Fault> {
    let payload = |number| Payload::new('a', number, 40);
    let expected = (0..).map(payload).zip(needs.iter().copied()).collect();
    let found: Vec<_> = found.iter().map(|number| payload(*number).bytes(Layout::Text)).collect();
    records(&CASE, &expected, &found)
}

#[test]
fn a_power_cut_takes_the_end_and_nothing_that_was_committed() {
    use Need::{May, Must, Should};
    let check = |needs: &[Need], found: &[u32]| {
        let payload = |number| Payload::new('a', number, 40);
        let expected = (0..).map(payload).zip(needs.iter().copied()).collect();
        let found: Vec<_> =
            found.iter().map(|number| payload(*number).bytes(Layout::Text)).collect();
        records_after_power_cut(&CASE, &expected, &found)
    };
    assert_eq!(check(&[Must, Should, May(0)], &[0]), Ok(()));
    assert_eq!(check(&[Must, Should, May(0)], &[0, 1]), Ok(()));
    assert_eq!(check(&[Must, May(0), Should], &[0, 2]), Ok(()));
    assert!(check(&[Must, Should, May(0)], &[0, 2]).is_err(), "a gap");
    assert!(check(&[Must, Should, Must], &[0]).is_err(), "lost");
    assert!(check(&[Must, Should], &[1]).is_err(), "lost");
    assert!(check(&[Must, Should], &[0, 1, 1]).is_err(), "doubled");
}

#[test]
fn retention_that_takes_too_much_is_noticed() {
    let case = Case { operation: Operation::Retain, ..CASE };
    let records = case.operation.template_records();
    let bytes = |range: std::ops::Range<usize>| {
        records[range].iter().map(|record| record.bytes(Layout::Text)).collect::<Vec<_>>()
    };
    let dir = tempfile::tempdir().unwrap();
    let file = |number: u32| dir.path().join(format!("20260101T000000Z-{number:016x}.log"));
    (0..7).for_each(|number| fs::write(file(number), "x").unwrap());
    assert_eq!(kept(&case, dir.path(), &bytes(4..10)), Ok(()));
    let gap = [bytes(4..6), bytes(7..10)].concat();
    assert!(kept(&case, dir.path(), &gap).is_err(), "one in the middle");
    fs::remove_file(file(0)).unwrap();
    assert!(kept(&case, dir.path(), &bytes(4..10)).is_err(), "a file too many");
}

#[test]
fn lost_doubled_swapped_and_half_present_records_are_noticed() {
    use Need::{May, Must, Never};
    assert_eq!(check(&[Must, May(0), May(0), Must], &[0, 1, 2, 3]), Ok(()));
    assert_eq!(check(&[Must, May(0), May(0), Must], &[0, 3]), Ok(()));
    assert!(check(&[Must, May(0), May(0), Must], &[0, 1, 3]).is_err(), "half a batch");
    assert!(check(&[Must, Must], &[0]).is_err(), "lost");
    assert!(check(&[Must, Must], &[1, 0]).is_err(), "swapped");
    assert!(check(&[Must, Must], &[0, 0, 1]).is_err(), "doubled");
    assert!(check(&[Must, Never], &[0, 1]).is_err(), "given up");
    assert!(records(&CASE, &vec![], &[b"a1/40 torn\n".to_vec()]).is_err(), "torn");
}
