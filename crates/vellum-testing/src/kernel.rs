//! A kernel that is not as it should be, made by a seccomp(2) filter.

use std::io::Error;
use std::thread;

/// Where the number of a call, and the halves of its third argument, are in the data of a filter.
const NUMBER_OF_CALL: u32 = 0;
const THIRD_ARGUMENT: [u32; 2] = [32, 36];

/// From now on, in this thread and all that come from it, `madvise(2)` says that it has done
/// everything and does nothing, as under `qemu-user`.
///
/// # Panics
///
/// If the kernel takes no filter.
pub fn ignore_advice() {
    if is_advice_ignored() {
        return;
    }
    // An error with the number 0 is success.
    answer(libc::SYS_madvise, 0);
    assert!(is_advice_ignored());
}

/// The calls that a careful unit does not allow, which the tests of the Python package read too.
const NOT_FOR_SERVICES: &str = include_str!("not-for-services.txt");

/// The answer of a filter to a call that it does not allow.
#[derive(Clone, Copy, Debug)]
pub enum Refusal {
    /// It ends the process.
    Kill,
    /// The call fails with this `errno`.
    Fail(i32),
}

/// Numbers of the calls that are not for services: the first and the last of each range.
fn not_for_services() -> impl Iterator<Item = (u32, u32)> {
    let rows = NOT_FOR_SERVICES.lines().filter(|row| !row.starts_with('#'));
    rows.map(|row| {
        let (first, last) = row.split_once(' ').expect("two numbers in a row");
        (first.parse().expect("a number"), last.parse().expect("a number"))
    })
}

/// Has a program run under the filter of a careful unit: a call that is not for services kills it.
pub fn run_as_service(command: &mut std::process::Command) {
    run_filtered(command, Refusal::Kill);
}

/// Has a program run under the filter of a careful unit, which refuses calls in this way.
pub fn run_filtered(command: &mut std::process::Command, refusal: Refusal) {
    use std::os::unix::process::CommandExt;
    let refuse = match refusal {
        Refusal::Kill => libc::SECCOMP_RET_KILL_PROCESS,
        Refusal::Fail(errno) => libc::SECCOMP_RET_ERRNO | errno as u32,
    };
    let statement =
        |code: u32, jt: u8, jf: u8, k: u32| libc::sock_filter { code: code as u16, jt, jf, k };
    let compare = |way: u32, jt, jf, k| statement(libc::BPF_JMP | way | libc::BPF_K, jt, jf, k);
    let answer = |k| statement(libc::BPF_RET | libc::BPF_K, 0, 0, k);
    let load = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    let mut program = vec![statement(load, 0, 0, NUMBER_OF_CALL)];
    for (first, last) in not_for_services() {
        program.push(compare(libc::BPF_JGE, 0, 2, first));
        program.push(compare(libc::BPF_JGT, 1, 0, last));
        program.push(answer(refuse));
    }
    program.push(answer(libc::SECCOMP_RET_ALLOW));
    // SAFETY: between fork and exec it makes system calls alone; the kernel copies the filter.
    unsafe {
        command.pre_exec(move || {
            let filter =
                libc::sock_fprog { len: program.len() as u16, filter: program.as_ptr().cast_mut() };
            let is_set = libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
                && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const filter)
                    == 0;
            if is_set { Ok(()) } else { Err(Error::last_os_error()) }
        });
    }
}

/// From now on, in this thread and all that come from it, a system call fails with `errno` and
/// does nothing.
///
/// # Panics
///
/// If the kernel takes no filter.
fn answer(call: libc::c_long, errno: i32) {
    answer_where(&[(NUMBER_OF_CALL, call as u32)], errno);
}

/// As [`answer`], for calls that have all these words.
fn answer_where(words: &[(u32, u32)], errno: i32) {
    let statement = |code: u32, k: u32| libc::sock_filter { code: code as u16, jt: 0, jf: 0, k };
    let mut program = Vec::new();
    for (index, (place, word)) in words.iter().enumerate() {
        program.push(statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, *place));
        program.push(libc::sock_filter {
            code: (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16,
            jt: 0,
            // Over what is left, to the last statement.
            jf: ((words.len() - index) * 2 - 1) as u8,
            k: *word,
        });
    }
    program.push(statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ERRNO | errno as u32));
    program.push(statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW));
    let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: the kernel copies the filter, which outlives the call, and checks it.
    let is_set = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const filter) == 0
    };
    assert!(is_set, "the kernel takes no filter: {}", Error::last_os_error());
}

/// Does something in a thread in which a system call fails with `errno` and does nothing.
///
/// # Panics
///
/// If the kernel takes no filter, and as `act` does.
pub fn where_it_fails<T: Send>(
    call: libc::c_long,
    errno: i32,
    act: impl FnOnce() -> T + Send,
) -> T {
    apart(|| answer(call, errno), act)
}

/// As [`where_it_fails`], for each write of no bytes, as where the filesystem has stopped.
///
/// # Panics
///
/// If the kernel takes no filter, and as `act` does.
pub fn where_empty_writes_fail<T: Send>(errno: i32, act: impl FnOnce() -> T + Send) -> T {
    let [low, high] = THIRD_ARGUMENT.map(|half| (half, 0));
    let words = [(NUMBER_OF_CALL, libc::SYS_pwrite64 as u32), low, high];
    apart(|| answer_where(&words, errno), act)
}

/// Acts in a thread of its own, in which `change` has changed the kernel.
fn apart<T: Send>(change: impl FnOnce() + Send, act: impl FnOnce() -> T + Send) -> T {
    let act = move || {
        change();
        act()
    };
    thread::scope(|scope| scope.spawn(act).join().unwrap())
}

fn is_advice_ignored() -> bool {
    // SAFETY: the range is empty, and no kernel knows this advice.
    unsafe { libc::madvise(std::ptr::null_mut(), 0, -1) == 0 }
}
