//! Forks, inside of roles only: the test harness itself has threads that must not be copied.

use std::time::Instant;

use crate::PATIENCE;

/// Runs `then` in a forked child, which ends without unwinding; returns the child's number.
pub fn fork(then: impl FnOnce() -> i32) -> i32 {
    // SAFETY: the child uses nothing that another thread of this process may hold locked, but
    // the allocator, which the C library makes safe across forks.
    match unsafe { libc::fork() } {
        0 => {
            let answer = std::panic::catch_unwind(std::panic::AssertUnwindSafe(then));
            // SAFETY: ends this process alone, without running anything of the parent's.
            unsafe { libc::_exit(answer.unwrap_or(101)) }
        }
        -1 => panic!("fork: {}", std::io::Error::last_os_error()),
        pid => pid,
    }
}

/// How a forked child ended: its exit code, or the negated signal.
pub fn wait(pid: i32) -> i32 {
    let mut status = 0;
    // SAFETY: `status` outlives the call, and `pid` is a child of this process.
    assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
    code(status)
}

/// Like [`wait`], but `None` for a child that does not end; it is killed then.
pub fn wait_patiently(pid: i32) -> Option<i32> {
    let start = Instant::now();
    let mut status = 0;
    // SAFETY: as in `wait`.
    while unsafe { libc::waitpid(pid, &raw mut status, libc::WNOHANG) } == 0 {
        if start.elapsed() > PATIENCE / 4 {
            // SAFETY: `kill` touches no memory; the child has not been waited for.
            unsafe { libc::kill(pid, libc::SIGKILL) };
            wait(pid);
            return None;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    Some(code(status))
}

fn code(status: i32) -> i32 {
    if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { -libc::WTERMSIG(status) }
}
