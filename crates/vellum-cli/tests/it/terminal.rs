//! The differences on a terminal.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, WaitOptions, waitpid};
use rustix::pty::{self, OpenptFlags};
use rustix::termios::{self, Winsize};

use super::support::{Place, vellum, with_default_signals};

const ENTER: &str = "\x1b[?1049h";
const LEAVE: &str = "\x1b[?1049l";

/// A terminal, seen from the side of the person before it.
struct Terminal {
    person: File,
    own: File,
    seen: String,
}

impl Terminal {
    fn new(columns: u16, rows: u16) -> Terminal {
        let person = pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        pty::grantpt(&person).unwrap();
        pty::unlockpt(&person).unwrap();
        let name = pty::ptsname(&person, Vec::new()).unwrap();
        let own = rustix::fs::open(name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
        let terminal = Terminal { person: person.into(), own: own.into(), seen: String::new() };
        terminal.resize(columns, rows);
        terminal
    }

    fn resize(&self, columns: u16, rows: u16) {
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        termios::tcsetwinsize(&self.own, size).unwrap();
    }

    /// Its own side, for a stream of a command.
    fn stream(&self) -> Stdio {
        self.own.try_clone().unwrap().into()
    }

    /// Starts a command whose output it shows.
    fn start(&self, command: &mut Command) -> Child {
        let command = command.env("TERM", "xterm").stdout(self.stream());
        command.stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Waits until it shows `text`; returns everything that has come up to there since the last
    /// time.
    fn until(&mut self, text: &str) -> String {
        loop {
            if let Some(at) = self.seen.find(text) {
                let rest = self.seen.split_off(at + text.len());
                return std::mem::replace(&mut self.seen, rest);
            }
            self.wait(text);
            let mut bytes = [0; 4096];
            let count = self.person.read(&mut bytes).unwrap();
            // Only characters beyond ASCII are cut here, which no test checks.
            self.seen.push_str(&String::from_utf8_lossy(&bytes[..count]));
        }
    }
}

impl Terminal {
    /// Waits until there is something to see.
    #[track_caller]
    fn wait(&self, text: &str) {
        let timeout = Timespec { tv_sec: 40, tv_nsec: 0 };
        let mut fds = [PollFd::new(&self.person, PollFlags::IN)];
        let count = poll(&mut fds, Some(&timeout)).unwrap();
        assert_eq!(count, 1, "{text:?} does not come behind {:?}", self.seen);
    }
}

fn signal(child: &Child, name: &str) {
    let status = Command::new("kill").args([name, &child.id().to_string()]).status();
    assert!(status.unwrap().success());
}

/// The lines of a page without what a terminal obeys.
fn lines(page: &str) -> Vec<String> {
    let plain = anstream::adapter::strip_str(page).to_string();
    plain.split("\r\n").map(String::from).collect()
}

#[test]
fn who_watches_has_a_screen_that_is_drawn_over_and_left_at_the_end() {
    let place = Place::new();
    place.append(&["--commit", "every"], b"one\n");
    for (name, number) in [("-INT", 2), ("-TERM", 15), ("-HUP", 1)] {
        let mut terminal = Terminal::new(60, 12);
        let mut command = with_default_signals(vellum().arg("stat").arg("-w").arg(place.log()));
        let mut watching = terminal.start(&mut command);
        let before = terminal.until(ENTER);
        assert_eq!(before, ENTER, "nothing comes before the screen");
        for page in [terminal.until("\x1b[J"), terminal.until("\x1b[J")] {
            assert!(page.contains("\x1b[H") && !page.contains("\x1b[2J"), "{page:?}");
            assert!(page.contains("\x1b[1m"), "there are styles: {page:?}");
            let lines = lines(&page);
            assert_eq!(lines.len(), 12, "{lines:?}");
            assert!(lines.iter().all(|line| line.chars().count() <= 60), "{lines:?}");
            assert!(lines.last().unwrap().contains("more lines"), "{lines:?}");
        }
        signal(&watching, name);
        let rest = terminal.until(LEAVE);
        assert!(rest.contains("\x1b[?25h"), "the cursor is back: {rest:?}");
        assert_eq!(watching.wait().unwrap().signal(), Some(number));
    }
}

#[test]
fn the_screen_fits_a_terminal_whose_size_changes() {
    let place = Place::new();
    place.append(&[], b"one\n");
    let mut terminal = Terminal::new(40, 9);
    let mut watching = terminal.start(vellum().arg("stat").arg("-w").arg(place.log()));
    terminal.until("\x1b[J");
    terminal.resize(90, 70);
    signal(&watching, "-WINCH");
    let mut has_all = || !lines(&terminal.until("\x1b[J")).concat().contains("more lines");
    assert!(has_all() || has_all());
    watching.kill().unwrap();
    watching.wait().unwrap();
}

#[test]
fn the_screen_is_left_before_an_error_is_told_and_while_it_is_stopped() {
    let place = Place::new();
    place.append(&[], b"one\n");
    let mut terminal = Terminal::new(80, 24);
    let mut command = vellum();
    let watching = terminal.start(command.arg("stat").arg("-w").arg(place.log()));
    terminal.until("\x1b[J");
    signal(&watching, "-TSTP");
    terminal.until(LEAVE);
    // A signal that comes before it has stopped is lost.
    let stopped = waitpid(Some(Pid::from_child(&watching)), WaitOptions::UNTRACED).unwrap();
    assert!(stopped.unwrap().1.stopped());
    signal(&watching, "-CONT");
    terminal.until(ENTER);
    fs::remove_dir_all(place.log()).unwrap();
    terminal.until(LEAVE);
    let told = complaint(watching);
    assert!(told.contains("there is no log"), "{told}");
}

/// Its standard error until it fails.
fn complaint(mut child: Child) -> String {
    let mut text = String::new();
    child.stderr.take().unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1));
    text
}

#[test]
fn there_is_no_screen_where_a_terminal_has_none_and_no_style_where_none_is_wanted() {
    let place = Place::new();
    place.append(&[], b"one\n");
    let mut terminal = Terminal::new(80, 24);
    let mut command = vellum();
    command.arg("stat").arg("-w").arg(place.log()).stdout(terminal.stream());
    let mut dumb = command.env("TERM", "dumb").spawn().unwrap();
    terminal.until("attached");
    let page = terminal.until("attached");
    assert!(!page.contains('\x1b'), "{page:?}");
    dumb.kill().unwrap();
    dumb.wait().unwrap();
    let mut terminal = Terminal::new(80, 24);
    let mut plain = terminal.start(command.env("NO_COLOR", "1"));
    terminal.until(ENTER);
    let page = terminal.until("\x1b[J");
    assert!(!page.contains("\x1b[1m") && page.contains("\x1b[H"), "{page:?}");
    plain.kill().unwrap();
    plain.wait().unwrap();
    // Nor is there anything of a screen where the output is no terminal.
    let mut command = vellum();
    command.arg("stat").arg("-w").arg(place.log()).env("CLICOLOR_FORCE", "1");
    let mut piped = super::support::Running::start(&mut command);
    let told: String = (0..60).map(|_| piped.line()).collect();
    assert!(told.contains("\x1b[1m") && !told.contains("\x1b[?") && !told.contains("\x1b[H"));
}

/// Starts a command of a user at the terminal.
fn start(terminal: &Terminal, words: &[&str]) -> Child {
    let mut command = vellum();
    command.args(words).env("TERM", "xterm").stdin(terminal.stream()).stderr(terminal.stream());
    command.stdout(Stdio::null()).spawn().unwrap()
}

/// The exit code of a command that asks and gets this answer, and its question.
fn asked(words: &[&str], answer: &str) -> (i32, String) {
    let mut terminal = Terminal::new(80, 24);
    let mut child = start(&terminal, words);
    let question = terminal.until("[y/N] ");
    terminal.person.write_all(answer.as_bytes()).unwrap();
    (child.wait().unwrap().code().unwrap(), question)
}

#[test]
fn what_takes_records_away_asks_before_it_does() {
    let place = Place::new();
    let log = place.log().to_str().unwrap().to_string();
    let told = place.append(&[], b"one\ntwo\nthree\n");
    let (second, third) = (told[1].to_string(), told[2].to_string());
    let trim = ["trim", &log, "--before", &second];
    let truncate = ["truncate", &log, &third];
    for words in [&trim[..], &truncate] {
        // A line, or the end of the input.
        for answer in ["n\n", "\n", "yesterday\n", "\x04"] {
            let (code, question) = asked(words, answer);
            assert_eq!(code, 1, "{words:?} {answer:?}");
            assert!(question.contains(&log) && question.contains(words[words.len() - 1]));
        }
    }
    assert_eq!(place.run("cat", &[], b"").good(), "one\ntwo\nthree\n");
    assert_eq!(asked(&trim, "y\n").0, 0);
    assert_eq!(asked(&truncate, "YES\n").0, 0);
    assert_eq!(place.run("cat", &[], b"").good(), "two\n");
}

#[test]
fn nothing_is_asked_with_yes_nor_where_nothing_goes_nor_where_somebody_could_not_see_it() {
    let place = Place::new();
    let log = place.log().to_str().unwrap().to_string();
    let told = place.append(&[], b"one\ntwo\nthree\n");
    let (first, second, third) = (&told[0].to_string(), &told[1].to_string(), &told[2].to_string());
    for words in [
        &["trim", &log, "--before", first][..],
        &["truncate", &log, third, "--dry-run"],
        &["truncate", &log, &place.stat()["published"].to_string()],
        &["trim", &log, "--before", second, "--yes"],
        &["truncate", "-y", &log, third],
    ] {
        let terminal = Terminal::new(80, 24);
        assert_eq!(start(&terminal, words).wait().unwrap().code(), Some(0), "{words:?}");
    }
    assert_eq!(place.run("cat", &[], b"").good(), "two\n");
    // A pipe on either side, and there is no question.
    let terminal = Terminal::new(80, 24);
    let mut command = vellum();
    command.args(["truncate", &log, second]).stdin(terminal.stream()).stderr(Stdio::null());
    assert!(command.status().unwrap().success());
    assert_eq!(place.run("cat", &[], b"").good(), "");
}

#[test]
fn repair_asks_where_its_new_log_would_stand_among_other_files() {
    let place = Place::new();
    place.append(&[], b"one\n");
    let (log, copy) = (place.log(), place.dir().join("copy"));
    let words = ["repair", log.to_str().unwrap(), copy.to_str().unwrap()];
    fs::create_dir(&copy).unwrap();
    fs::write(copy.join("lock"), "").unwrap();
    let (code, question) = asked(&words, "n\n");
    assert!(code == 1 && question.contains("is there already"), "{question}");
    assert!(!copy.join("control").exists());
    assert_eq!(asked(&words, "y\n").0, 0);
    // A log that is there is refused, without a question.
    let terminal = Terminal::new(80, 24);
    assert_eq!(start(&terminal, &words).wait().unwrap().code(), Some(1));
    fs::remove_dir_all(&copy).unwrap();
    assert_eq!(start(&terminal, &words).wait().unwrap().code(), Some(0), "nothing is there");
}
