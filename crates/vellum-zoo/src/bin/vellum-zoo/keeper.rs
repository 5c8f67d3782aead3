//! The process that takes the signals. Another one serves the disk, so whichever of the two dies,
//! the other one cleans up.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};

use anyhow::Context;
use rustix::mount::{UnmountFlags, unmount};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;
use vellum_command::private_dir::PrivateDir;
use vellum_zoo::look_for_needs;

use super::RunArguments;

/// Makes the disk and waits for its end; returns the exit status.
pub(super) fn run(arguments: &RunArguments) -> anyhow::Result<u8> {
    arguments.animal()?;
    look_for_needs()?;
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGCHLD])?;
    let dir = PrivateDir::new(&std::env::temp_dir(), "vellum-zoo-")?;
    let mut server = Command::new(std::env::current_exe()?)
        .arg("serve")
        .args(std::env::args_os().skip(2))
        .env(super::show::DIR, dir.path())
        .stdin(Stdio::piped())
        // A terminal's interrupt is for this process.
        .process_group(0)
        .spawn()
        .context("cannot start the server")?;
    let mut orders = server.stdin.take();
    for signal in &mut signals {
        match signal {
            SIGCHLD => {
                if let Some(status) = server.try_wait()? {
                    clean_up(dir.path(), server.id());
                    return Ok(status.code().map_or(super::CANNOT_RUN, |code| code as u8));
                }
            }
            SIGUSR1 => order(&mut orders),
            // The end of its input tells the server to end.
            _ => orders = None,
        }
    }
    end(&mut server)
}

fn order(orders: &mut Option<ChildStdin>) {
    if let Some(orders) = orders {
        // A server that is gone is noticed otherwise.
        let _ = orders.write_all(b"cut\n");
    }
}

fn end(server: &mut Child) -> anyhow::Result<u8> {
    Ok(server.wait()?.code().map_or(super::CANNOT_RUN, |code| code as u8))
}

/// Takes down what a server leaves that was killed; there is nothing after one that ended.
fn clean_up(dir: &std::path::Path, server: u32) {
    if let Some(at) = super::show::mounted_from(server) {
        let _ = unmount(at, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW);
    }
    let _ = unmount(dir.join("disk"), UnmountFlags::DETACH);
}
