//! The first steps of a worker, which put it into its worlds.

use std::fs;
use std::io;
use std::path::Path;

use rustix::process::Resource;

use super::surroundings::{GROUP, SECOND_USER, SERVICE_USER, SHM};
use super::sys::{self, End};
use super::table::{Area, Kind, World, is_odd_one};
use crate::random::Random;

const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// Enters all of `worlds`, as the worker with this number. `base` is the directory of the campaign.
///
/// In a PID namespace of its own the caller is another process afterwards; the one before waits for
/// it, and ends as it ends.
pub(crate) fn enter(
    worlds: &[&World],
    worker: usize,
    base: &Path,
    random: &mut Random,
) -> io::Result<()> {
    let needs_mounts =
        |world: &&&World| matches!(world.kind.area(), Area::Memory | Area::Boot | Area::Pid);
    if worlds.iter().find(needs_mounts).is_some() {
        sys::unshare(libc::CLONE_NEWNS)?;
        let none = Path::new("none");
        sys::mount(none, Path::new("/"), "", libc::MS_REC | libc::MS_PRIVATE, "")?;
    }
    // Steps that need the rights of root come first, the change of the user last, and limits
    // between them.
    for area in [Area::Memory, Area::Boot, Area::Pid, Area::Limit, Area::User] {
        for world in worlds.iter().filter(|world| world.kind.area() == area) {
            enter_one(world.kind, worker, base, random)?;
        }
    }
    Ok(())
}

fn enter_one(kind: Kind, worker: usize, base: &Path, random: &mut Random) -> io::Result<()> {
    let is_odd = is_odd_one(worker);
    match kind {
        Kind::ShmPrivate => sys::mount(Path::new("shm"), Path::new(SHM), "tmpfs", 0, "size=64m"),
        Kind::ShmSmall | Kind::ShmFull | Kind::ShmCleared => bind(&base.join("shm"), SHM),
        Kind::ShmAbsent => leave_shared_memory(),
        Kind::NoBoot => bind(&base.join("empty"), BOOT_ID),
        Kind::SomeBoot if is_odd => bind(&base.join("empty"), BOOT_ID),
        Kind::Pid if is_odd => enter_pid_namespace(),
        Kind::Descriptors if is_odd => sys::limit(Resource::Nofile, 6 + random.below(10)),
        Kind::FileSize | Kind::FileSizeIgnored if is_odd => {
            if kind == Kind::FileSizeIgnored {
                sys::ignore(libc::SIGXFSZ);
            }
            let most = [0, 4 << 10, 20 << 10, 64 << 10, 100 << 10];
            sys::limit(Resource::Fsize, *random.pick(&most))
        }
        Kind::Memory if is_odd => {
            let more = (64 + random.below(1000)) << 10;
            sys::limit(Resource::As, address_space()? + more)
        }
        Kind::Root | Kind::Closed | Kind::Traversed | Kind::Umask => {
            if kind == Kind::Umask {
                sys::umask(0o077);
            }
            if is_odd { Ok(()) } else { sys::become_user(SERVICE_USER, SERVICE_USER) }
        }
        Kind::Group => {
            sys::umask(0o007);
            sys::become_user(if is_odd { SECOND_USER } else { SERVICE_USER }, GROUP)
        }
        _ => Ok(()),
    }
}

fn bind(source: &Path, target: &str) -> io::Result<()> {
    sys::mount(source, Path::new(target), "", libc::MS_BIND, "")
}

/// A `/dev` in which there is hardly anything.
fn leave_shared_memory() -> io::Result<()> {
    sys::umask(0);
    // The devices are looked at before they are covered.
    let new = Path::new("/mnt");
    sys::mount(Path::new("dev"), new, "tmpfs", 0, "size=64k,mode=755")?;
    for name in ["null", "zero", "urandom", "random"] {
        sys::make_device(&Path::new("/dev").join(name), &new.join(name))?;
    }
    sys::umask(0o022);
    bind(new, "/dev")
}

fn enter_pid_namespace() -> io::Result<()> {
    sys::unshare(libc::CLONE_NEWPID)?;
    match sys::fork_both()? {
        None => sys::mount(Path::new("proc"), Path::new("/proc"), "proc", 0, ""),
        Some(child) => match sys::wait_for(child)? {
            End::Exited(code) => std::process::exit(code),
            // The first process of a namespace ignores its own SIGABRT, and `abort` then faults.
            End::Killed(libc::SIGSEGV) => sys::die_of(libc::SIGABRT),
            End::Killed(signal) => sys::die_of(signal),
        },
    }
}

/// Bytes of address space in use.
fn address_space() -> io::Result<u64> {
    let pages = fs::read_to_string("/proc/self/statm")?;
    let pages = pages.split(' ').next().and_then(|pages| pages.parse::<u64>().ok());
    pages.map(|pages| pages * 4096).ok_or_else(|| io::Error::other("no statm"))
}
