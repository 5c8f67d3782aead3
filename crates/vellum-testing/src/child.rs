//! Second processes: this test binary again, started in a role.
//!
//! A role talks to its parent in lines: it hears on standard input and says on standard output,
//! behind a mark, because the test harness prints there too.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use crate::PATIENCE;

const ROLE_VARIABLE: &str = "VELLUM_TEST_ROLE";
const ARGUMENTS_VARIABLE: &str = "VELLUM_TEST_ARGUMENTS";
const MARK: &str = "\u{1}says: ";
/// Separates arguments; no path of a test holds it.
const SEPARATOR: &str = "\u{1f}";

/// A name, and the work of a process in this role.
pub type Role = (&'static str, fn(&[String]));

/// In a second process: plays its role and exits. In an ordinary run: nothing.
pub fn run_role(tables: &[&[Role]]) {
    let Ok(name) = std::env::var(ROLE_VARIABLE) else { return };
    let arguments = std::env::var(ARGUMENTS_VARIABLE).unwrap_or_default();
    let arguments: Vec<String> = arguments.split(SEPARATOR).map(String::from).collect();
    let (_, role) = tables
        .iter()
        .flat_map(|table| table.iter())
        .find(|(role, _)| *role == name)
        .unwrap_or_else(|| panic!("no role {name}"));
    let played = std::panic::catch_unwind(|| role(&arguments));
    std::process::exit(if played.is_ok() { 0 } else { 101 });
}

/// The command that starts this binary in a role.
pub fn command(role: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "child_entry", "--nocapture", "--quiet", "--test-threads=1"])
        .env(ROLE_VARIABLE, role)
        .env(ARGUMENTS_VARIABLE, arguments.join(SEPARATOR));
    command
}

/// Lets the process be killed when the thread that starts it ends, also if that is killed itself: a
/// server of a test must not outlive the test.
pub fn die_with_parent(command: &mut Command) -> &mut Command {
    let parent = std::process::id();
    // SAFETY: between fork and exec it makes system calls alone.
    unsafe {
        command.pre_exec(move || {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            // The parent may have died before.
            match libc::getppid() == parent as i32 {
                true => Ok(()),
                false => Err(std::io::ErrorKind::NotConnected.into()),
            }
        })
    }
}

/// In a role: tells the parent.
pub fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    // One write, so that a kill leaves no half line behind.
    out.write_all(format!("\n{MARK}{line}\n").as_bytes()).unwrap();
    out.flush().unwrap();
}

/// In a role: waits for the parent's next line; `None` when the parent has closed its end.
pub fn hear() -> Option<String> {
    let mut line = String::new();
    let count = std::io::stdin().lock().read_line(&mut line).unwrap();
    (count > 0).then(|| line.trim_end().to_string())
}

/// A second process.
#[derive(Debug)]
pub struct Child {
    process: std::process::Child,
    lines: Receiver<String>,
    role: String,
}

impl Child {
    /// Starts this binary in a role.
    pub fn start(role: &str, arguments: &[&str]) -> Child {
        Child::from_command(role, command(role, arguments))
    }

    /// Starts a command made by [`command`].
    pub fn from_command(role: &str, mut command: Command) -> Child {
        let mut process =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("starts");
        let out = BufReader::new(process.stdout.take().unwrap());
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                if let Some(said) = line.strip_prefix(MARK) {
                    let _ = sender.send(said.to_string());
                }
            }
        });
        Child { process, lines, role: role.to_string() }
    }

    /// The number of the process.
    pub fn pid(&self) -> i32 {
        self.process.id() as i32
    }

    /// Tells the child.
    pub fn tell(&mut self, line: &str) {
        let stdin = self.process.stdin.as_mut().unwrap();
        // A child that is gone shows itself when it is next heard or waited for.
        let _ = writeln!(stdin, "{line}");
    }

    /// The next line of the child; `None` when it has ended.
    #[track_caller]
    pub fn hears(&mut self) -> Option<String> {
        match self.lines.recv_timeout(PATIENCE) {
            Ok(line) => Some(line),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("the {} hangs", self.role),
        }
    }

    /// Reads the next line of the child, which must be `expected`.
    #[track_caller]
    pub fn expect(&mut self, expected: &str) {
        let heard = self.hears();
        assert_eq!(heard.as_deref(), Some(expected), "from the {}", self.role);
    }

    /// Like [`hears`](Child::hears), but `Err` for a child that says nothing for so long.
    ///
    /// # Errors
    ///
    /// The timeout.
    pub fn hears_within(&mut self, wait: Duration) -> Result<Option<String>, RecvTimeoutError> {
        match self.lines.recv_timeout(wait) {
            Ok(line) => Ok(Some(line)),
            Err(RecvTimeoutError::Disconnected) => Ok(None),
            Err(timeout) => Err(timeout),
        }
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: i32) {
        // SAFETY: `kill` touches no memory; the process is ours and has not been waited for.
        assert_eq!(unsafe { libc::kill(self.pid(), signal) }, 0);
    }

    /// Kills it and waits until it is gone.
    pub fn kill(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Kills it, waits until it is gone, and returns the rest of its output.
    pub fn kill_and_hear(mut self) -> Vec<String> {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        self.lines.iter().collect()
    }

    /// Continues it to its end and waits for that.
    #[track_caller]
    pub fn finish(mut self) -> ExitStatus {
        drop(self.process.stdin.take());
        let role = &self.role;
        crate::until(&format!("the {role} ends"), || self.process.try_wait().unwrap())
    }

    /// Lets it end and asserts that it ended well.
    #[track_caller]
    pub fn finish_well(self) {
        let role = self.role.clone();
        let status = self.finish();
        assert!(status.success(), "the {role} ended with {status}, signal {:?}", status.signal());
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
