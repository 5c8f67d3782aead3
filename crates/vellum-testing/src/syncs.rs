//! Syncs that succeed while the filesystem stops.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;
use std::sync::mpsc;
use std::{fs, io, mem, thread};

/// Acts in a thread of its own. The first sync there of a file that `is_it` finds by its path has
/// `stop` called, and succeeds without having done anything. So does each later sync of the thread.
///
/// # Panics
///
/// If the kernel takes no filter, and as `act` does.
pub fn where_a_sync_meets<T: Send>(
    is_it: impl Fn(&Path) -> bool,
    stop: impl FnOnce(),
    act: impl FnOnce() -> T + Send,
) -> T {
    let (sender, receiver) = mpsc::channel();
    thread::scope(|scope| {
        let acting = scope.spawn(move || {
            sender.send(listen_to_syncs()).unwrap();
            act()
        });
        let listener = receiver.recv().unwrap();
        let mut stop = Some(stop);
        while let Some(call) = next(&listener) {
            let path = fs::read_link(format!("/proc/self/fd/{}", call.data.args[0]));
            if path.is_ok_and(|path| is_it(&path))
                && let Some(stop) = stop.take()
            {
                stop();
            }
            answer(&listener, call.id, stop.is_some());
        }
        acting.join().unwrap()
    })
}

/// From now on, the calls of this thread that sync wait for an answer at this descriptor.
fn listen_to_syncs() -> OwnedFd {
    let statement =
        |code: u32, jt: u8, k: u32| libc::sock_filter { code: code as u16, jt, jf: 0, k };
    let is_call = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    let mut program = [
        statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0),
        statement(is_call, 2, libc::SYS_fsync as u32),
        statement(is_call, 1, libc::SYS_fdatasync as u32),
        statement(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ALLOW),
        statement(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_USER_NOTIF),
    ];
    let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    let (mode, flag) = (libc::SECCOMP_SET_MODE_FILTER, libc::SECCOMP_FILTER_FLAG_NEW_LISTENER);
    // SAFETY: the kernel copies the filter, which outlives the call, and checks it. The descriptor
    // that it returns has no other owner.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        let fd = libc::syscall(libc::SYS_seccomp, mode, flag, &raw const filter);
        assert!(fd >= 0, "the kernel takes no filter: {}", io::Error::last_os_error());
        OwnedFd::from_raw_fd(fd as i32)
    }
}

/// The next call that waits; none when the thread has ended.
fn next(listener: &OwnedFd) -> Option<libc::seccomp_notif> {
    let mut ready = libc::pollfd { fd: listener.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: the kernel writes into `ready`, and into a call that is all zeros, as it asks for.
    unsafe {
        while libc::poll(&mut ready, 1, -1) < 0 {}
        let mut call: libc::seccomp_notif = mem::zeroed();
        let is_call = ready.revents & libc::POLLIN != 0
            && libc::ioctl(ready.fd, libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut call) == 0;
        is_call.then_some(call)
    }
}

/// Has a call go to the kernel, or succeed.
fn answer(listener: &OwnedFd, id: u64, is_for_kernel: bool) {
    let flags = if is_for_kernel { libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32 } else { 0 };
    let answer = libc::seccomp_notif_resp { id, val: 0, error: 0, flags };
    // SAFETY: the kernel reads `answer`.
    unsafe {
        libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND, &raw const answer);
    }
}
