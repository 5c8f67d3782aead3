//! The help of the program.

use super::support::{run, stress};

#[test]
fn help_has_examples_and_says_nothing_of_what_is_internal() {
    for flag in ["-h", "--help"] {
        let text = run(stress().arg(flag)).good();
        assert!(text.contains("Examples:\n  vellum-stress "), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
        assert!(!text.contains("--next"), "{text}");
    }
}
