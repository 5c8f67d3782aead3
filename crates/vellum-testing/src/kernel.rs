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

/// Numbers of x86-64 that are in no group of `@system-service` of systemd 247, or are in
/// `@resources` or `@privileged`: a careful unit leaves them out. Later systemds allow more.
/// (systemd.exec(5), `systemd-analyze syscall-filter`.)
const NOT_FOR_SERVICES: [std::ops::RangeInclusive<u32>; 37] = [
    // chown, fchown, lchown; syslog, ptrace; setuid, setgid and their kin.
    92..=94,
    101..=101,
    103..=103,
    105..=106,
    113..=114,
    116..=117,
    119..=119,
    122..=123,
    // capset; uselib, personality of others; ustat, sysfs.
    126..=126,
    133..=134,
    136..=136,
    139..=139,
    // setpriority, sched_setparam, sched_setscheduler, vhangup … _sysctl, adjtimex, setrlimit.
    141..=142,
    144..=144,
    153..=156,
    159..=161,
    // acct, settimeofday, mount … reboot, sethostname, setdomainname, iopl, ioperm.
    163..=173,
    // Modules and quotas.
    174..=180,
    // sched_setaffinity.
    203..=203,
    // lookup_dcookie, clock_settime, mbind, set_mempolicy.
    212..=212,
    227..=227,
    236..=238,
    // kexec_load; ioprio_set, migrate_pages, fchownat, move_pages.
    246..=246,
    251..=251,
    256..=256,
    260..=260,
    279..=279,
    // perf_event_open, fanotify, open_by_handle_at, clock_adjtime.
    298..=298,
    300..=301,
    304..=305,
    // finit_module, sched_setattr, seccomp, kexec_file_load, bpf.
    313..=314,
    317..=317,
    320..=321,
    // Protection keys; mounts of the new kind.
    329..=331,
    428..=433,
    // close_range, pidfd_getfd.
    436..=436,
    438..=438,
];
/// Every number from here on is of a later kernel than that systemd knew: process_madvise.
const NEWER: u32 = 440;

/// Has a program run under the filter of a careful unit: a call that is not for services kills it.
pub fn run_as_service(command: &mut std::process::Command) {
    use std::os::unix::process::CommandExt;
    let statement =
        |code: u32, jt: u8, jf: u8, k: u32| libc::sock_filter { code: code as u16, jt, jf, k };
    let compare = |way: u32, jt, jf, k| statement(libc::BPF_JMP | way | libc::BPF_K, jt, jf, k);
    let answer = |k| statement(libc::BPF_RET | libc::BPF_K, 0, 0, k);
    let load = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    let mut program = vec![statement(load, 0, 0, NUMBER_OF_CALL)];
    let refused = NOT_FOR_SERVICES.iter().map(|range| (*range.start(), *range.end()));
    for (first, last) in refused.chain([(NEWER, u32::MAX)]) {
        program.push(compare(libc::BPF_JGE, 0, 2, first));
        program.push(compare(libc::BPF_JGT, 1, 0, last));
        program.push(answer(libc::SECCOMP_RET_KILL_PROCESS));
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
