//! A sample of the every-instruction test, of bounded time. All of it:
//! `cargo run --release -p vellum-testkit --bin vellum-killpoints -- --all`.

mod support;

#[test]
fn a_process_killed_at_any_instruction_costs_nobody_else_anything() {
    support::run(&["--seconds", "40", "--at-least", "100"]);
}
