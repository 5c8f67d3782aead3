//! Random inputs: some made up, some that are kept ones with changes.

use crate::random::Random;

/// The longest input made up: a choice of log and circumstances, and a few edits of six bytes.
const EDITS_MAX: u64 = 5;

/// The next input; `corpus` has the kept ones and is not empty.
pub fn random_input(random: &mut Random, corpus: &[Vec<u8>]) -> Vec<u8> {
    if random.below(2) == 0 {
        let edits = 1 + random.below(EDITS_MAX) as usize;
        let mut input = Vec::new();
        random.extend(&mut input, 2 + 6 * edits);
        return input;
    }
    let mut input = random.pick(corpus).clone();
    for _ in 0..=random.below(4) {
        change(random, &mut input);
    }
    input
}

fn change(random: &mut Random, input: &mut Vec<u8>) {
    let len = input.len();
    let at = random.below(len.max(1) as u64) as usize;
    match random.below(5) {
        0 => input.insert(at, random.byte()),
        1 if !input.is_empty() => drop(input.remove(at)),
        2 => random.extend(input, len + 6),
        3 if !input.is_empty() => input[at] ^= 1 << random.below(8),
        _ if !input.is_empty() => input[at] = random.byte(),
        _ => {}
    }
}
