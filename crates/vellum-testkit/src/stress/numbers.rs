//! Numbers as text.

/// `numbers`, which ascend, as `n` for one alone and `a-b` for one after the other.
pub(super) fn ranges(numbers: &[u64]) -> Vec<String> {
    let follows = |a: &u64, b: &u64| a.checked_add(1) == Some(*b);
    numbers.chunk_by(follows).map(range).collect()
}

fn range(numbers: &[u64]) -> String {
    match numbers {
        [first, .., last] => format!("{first}-{last}"),
        _ => numbers.iter().map(u64::to_string).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_put_together() {
        assert_eq!(ranges(&[0, 1, 2, 5, 7, 8]), ["0-2", "5", "7-8"]);
        assert_eq!(ranges(&[u64::MAX]), [u64::MAX.to_string()]);
        assert!(ranges(&[]).is_empty());
    }
}
