//! A sample of the test in which every system call fails, of bounded time. All of it:
//! `make inject`.

mod support;

#[test]
fn a_system_call_that_fails_costs_its_own_process_an_error_and_nobody_else_anything() {
    support::run(&["--inject", "all", "--seconds", "35", "--at-least", "100"]);
}
