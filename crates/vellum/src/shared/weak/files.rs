//! The words about the files of a text log.

use std::rc::Rc;

use super::{explore, join, start};
use crate::options::policy::NUMBER_COUNT;
use crate::options::policy::Policy;
use crate::shared::files::Newest;
use crate::shared::words::{NameWords, PolicyWords};
use crate::{Compression, Lsn};

fn newest(first: u64) -> Newest {
    Newest {
        first: Lsn::new(first),
        time: first,
        is_continuation: first % 2 == 1,
        group_bytes: first,
    }
}

#[test]
fn a_name_is_read_whole_or_not_at_all() {
    explore("files: 2 names, 1 reader", Some(3), || {
        let words = NameWords::default();
        let NameWords { first, time, is_continuation, group_bytes, .. } = &words;
        [first, time, is_continuation, group_bytes].iter().for_each(|word| word.poke(0));
        let words = Rc::new(words);
        let name = start(&words, |words: &NameWords| {
            words.store(newest(1));
            words.store(newest(2));
        });
        let read = start(&words, |words: &NameWords| {
            if let Some(read) = words.newest() {
                assert_eq!(read, newest(read.first.get()), "half of another name");
                assert!(words.time() >= read.time, "the time went back");
            }
        });
        join([name, read]);
    });
}

#[test]
fn a_policy_that_is_changed_is_read_whole_or_not_at_all() {
    explore("files: 2 policies, 1 reader", Some(2), || {
        let words = PolicyWords::default();
        words.version.poke(0);
        words.numbers.iter().for_each(|number| number.poke(0));
        let words = Rc::new(words);
        let [first, second] = [1, 2].map(|number| Policy::from_numbers([number; NUMBER_COUNT]));
        words.store(&first);
        let change = start(&words, move |words: &PolicyWords| {
            words.unload();
            words.store(&second);
        });
        let load = start(&words, move |words: &PolicyWords| {
            let loaded = words.load();
            assert!(
                loaded.is_none_or(|loaded| [first, second].contains(&loaded)),
                "of two policies: {loaded:?}"
            );
        });
        join([change, load]);
    });
}

#[test]
fn a_policy_is_read_whole() {
    explore("files: 1 policy, 1 reader", Some(3), || {
        let words = PolicyWords::default();
        words.version.poke(0);
        words.numbers.iter().for_each(|number| number.poke(0));
        let words = Rc::new(words);
        let mut policy = Policy::default();
        policy.compression = Compression::Zstd;
        let stored = policy.clone();
        let store = start(&words, move |words: &PolicyWords| words.store(&stored));
        let load = start(&words, move |words: &PolicyWords| {
            assert!(words.load().is_none_or(|loaded| loaded == policy), "half a policy");
        });
        join([store, load]);
    });
}
