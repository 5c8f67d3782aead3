//! One case with an error at each of its system calls: the operation fails, and its process lives
//! on.
//!
//! The victim gets the error, or continues in spite of it. Then a survivor appends and reads while
//! the victim is stopped, so no leftover hold may block others; the victim appends once more; and
//! everything is checked as after a death.

use std::cell::RefCell;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use libc::{EACCES, EDQUOT, EINTR, ENOSPC};
use vellum::{ErrorKind, Log};

use super::answer::{self, Answer, Injection, error_name};
use super::call::{self, Call};
use super::campaign::{Campaign, HELD_UP};
use super::check::Fault;
use super::known;
use super::point::next_stop;
use super::report::{Phase, word};
use super::scenario::{Case, Operation, Survivor};
use super::survivor::{Scene, later};
use super::victim::{self, DONE, ERRNO, IS_POISONED, KIND, LAST, STAYS};
use crate::payload::Payload;
use crate::trace::{self, Go, Pid, Stop};

/// An operation that makes more system calls than this does not end.
const CALLS_MAX: u64 = 20_000;

/// Which answers are tried.
#[derive(Clone, Debug)]
pub enum Choice {
    /// These errors, and short counts if `short`.
    Errors {
        /// Error numbers.
        errors: Vec<i32>,
        /// Whether calls also do less than they were asked for.
        short: bool,
        /// Whether what is known to fail is tried too.
        known: bool,
    },
    /// This one.
    One(Injection),
}

/// How an operation ended that had a call fail.
#[derive(Clone, Debug, Default)]
struct Outcome {
    /// The call that failed, for people; `None` if the operation made no such call this time.
    call: Option<String>,
    /// Whether the failure may be one that all processes have to know of.
    may_poison: bool,
    /// Whether the device has failed a sync of the log, which ends its commits.
    must_poison: bool,
    is_done: bool,
    kind: u64,
    errno: i32,
}

/// Whether a case can be tried: a survivor comes that neither held nor awaited anything before.
pub fn is_tried(case: &Case) -> bool {
    // A process that waits for space waits for ever.
    matches!(case.survivor, Survivor::Opener | Survivor::Attached)
        && case.operation != Operation::Block
}

impl Campaign<'_> {
    /// Tries the answers of `choice`; a sample of them where there is a deadline.
    pub fn inject(&mut self, choice: &Choice, deadline: Option<Instant>) -> io::Result<()> {
        let mut all = match choice {
            Choice::One(injection) => vec![*injection],
            Choice::Errors { errors, short, known } => {
                self.list_injections(errors, *short, *known)?
            }
        };
        let is_all_asked_for = !matches!(choice, Choice::Errors { known: false, .. });
        if deadline.is_some() {
            self.random.shuffle(&mut all);
        }
        for injection in all {
            if self.has_enough_faults() {
                return Ok(());
            }
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Ok(());
            }
            self.try_injection(injection, is_all_asked_for)?;
        }
        self.report.word(word::IS_COMPLETE).store(1, Ordering::SeqCst);
        Ok(())
    }

    fn list_injections(
        &mut self,
        errors: &[i32],
        short: bool,
        with_known: bool,
    ) -> io::Result<Vec<Injection>> {
        let calls = self.list_calls_beside()?;
        self.report.word(word::CALLS).store(calls.len() as u64, Ordering::SeqCst);
        let is_full = self.case.operation.is_on_full_disk();
        let is_wanted = |answer: &Answer| match answer {
            // Their disk is full already: these cases are about it.
            Answer::Error(ENOSPC | EDQUOT) if is_full => false,
            Answer::Error(errno) => errors.contains(errno),
            Answer::Short(_) => short,
        };
        let mut all = Vec::new();
        for (calls, call) in (0..).zip(&calls) {
            let Some((call, name)) = call else { continue };
            let mut add = |answer, is_lasting| {
                let injection = Injection { calls, answer, is_lasting };
                if !with_known && known::is_known(self.case, name, injection) {
                    self.report.word(word::KNOWN).fetch_add(1, Ordering::SeqCst);
                } else {
                    all.push(injection);
                }
            };
            let is_wanted = |answer: &Answer| is_wanted(answer) && !is_no_error(name, *answer);
            for answer in answer::answers_of(call).into_iter().filter(is_wanted) {
                add(answer, false);
                // A process that is interrupted for ever can do nothing.
                if matches!(answer, Answer::Error(errno) if errno != EINTR) {
                    add(answer, true);
                }
            }
        }
        Ok(all)
    }

    /// Has one victim go through the operation beside the survivor that it will have.
    fn list_calls_beside(&mut self) -> io::Result<Vec<Option<(Call, String)>>> {
        self.enter(Phase::Prepare);
        self.lay_out()?;
        let inherited = self.log_to_inherit()?;
        let victim = self.start_victim(inherited.as_ref())?;
        let is_attached = self.case.survivor == Survivor::Attached && inherited.is_none();
        let open = || self.case.options().open(&self.dir);
        let beside = is_attached.then(open).transpose().map_err(io::Error::from)?;
        self.run_to_mark(victim)?;
        let calls = list_calls(victim)?;
        trace::kill_and_reap(victim)?;
        victim::end_lingering(&self.page);
        drop(beside);
        Ok(calls)
    }

    /// One victim, with one answer; a known exception is a fault where it `is_asked_for`.
    fn try_injection(&mut self, injection: Injection, is_asked_for: bool) -> io::Result<()> {
        self.enter(Phase::Prepare);
        self.report.set_text(&format!("--inject {injection}"));
        self.lay_out()?;
        self.page.word(STAYS).store(1, Ordering::SeqCst);
        let inherited = self.log_to_inherit()?;
        let victim = self.start_victim(inherited.as_ref())?;
        self.turn += 1;
        let (played, outcome) = self.play_injection(victim, inherited, injection);
        trace::watchdog(0);
        trace::kill_and_reap(victim)?;
        victim::end_lingering(&self.page);
        self.report.word(word::POINTS).fetch_add(1, Ordering::SeqCst);
        if let Err(fault) = played {
            let call = outcome.and_then(|outcome| outcome.call).unwrap_or_default();
            // This victim may have made other calls than the one whose calls were listed.
            if !is_asked_for && known::is_known(self.case, &call, injection) {
                self.report.word(word::KNOWN).fetch_add(1, Ordering::SeqCst);
            } else {
                println!("FAULT: {} with {injection} of {call}: {fault}", self.case);
                self.note_fault(&format!("--inject {injection}"));
            }
        }
        Ok(())
    }

    fn play_injection(
        &self,
        victim: Pid,
        inherited: Option<Log>,
        injection: Injection,
    ) -> (Result<(), Fault>, Option<Outcome>) {
        let (turn, taken) = (self.turn, RefCell::default());
        let scene = Scene { case: self.case, dir: &self.dir, page: &self.page, turn, taken };
        let own = (self.case.survivor == Survivor::Attached).then(|| Payload::new('w', 0, 40));
        let mut outcome = None;
        let play = || -> Result<(), Fault> {
            let log = match own {
                Some(own) => {
                    let log = inherited.map_or_else(|| scene.open(), Ok)?;
                    scene.append(&log, own)?;
                    Some(log)
                }
                None => None,
            };
            let astray = |error| format!("the victim went astray: {error}");
            self.run_to_mark(victim).map_err(astray)?;
            self.enter(Phase::Fail);
            let ended = self.have_it_fail(victim, injection);
            let ended = outcome.insert(ended.map_err(astray)?).clone();
            self.enter(Phase::Survive);
            judge(&ended, injection)?;
            scene.go_on_beside(log, own, victim, &ended)
        };
        let played = play();
        (played, outcome)
    }

    /// Takes a victim through the operation, with this answer in its place.
    fn have_it_fail(&self, victim: Pid, injection: Injection) -> io::Result<Outcome> {
        // A truncation that could not be finished ends the log until it is opened again.
        let may_poison = self.case.operation == Operation::Truncate;
        let mut outcome = Outcome { may_poison, ..Outcome::default() };
        let mut calls = 0;
        while next_stop(victim, Go::ToSystemCall)? == Stop::SystemCall {
            let is_hit =
                calls == injection.calls || injection.is_lasting && calls > injection.calls;
            let call = if is_hit { call::at_entry(victim)? } else { None };
            let is_it = |call: &Call| can_give(call, injection.answer) && can_fail(victim, call);
            let call = call.filter(is_it);
            let call =
                call.filter(|call| !is_no_error(&call::describe(victim, call), injection.answer));
            if let Some(call) = &call {
                let told = || call::describe(victim, call);
                outcome.call.get_or_insert_with(told);
                let commits = self.case.operation.commits();
                outcome.may_poison |= answer::is_about_the_device(call, injection.answer, commits);
                outcome.must_poison |= self.case.operation.runs_beside_commits()
                    && answer::is_failed_sync(call, injection.answer);
            }
            pass_with(victim, call.as_ref(), injection.answer)?;
            calls += 1;
            if calls == CALLS_MAX {
                return Err(io::Error::other("the operation does not end"));
            }
        }
        let load = |index| self.page.word(index).load(Ordering::SeqCst);
        outcome.is_done = load(DONE) == 1;
        outcome.kind = load(KIND);
        outcome.errno = load(ERRNO) as i32;
        if self.case.operation.drops_log() && outcome.call.is_some() {
            // No caller can learn that it failed.
            self.page.word(DONE).store(0, Ordering::SeqCst);
        }
        Ok(outcome)
    }
}

/// The system calls of an operation, and their names for people; `None` for those that can't fail.
fn list_calls(victim: Pid) -> io::Result<Vec<Option<(Call, String)>>> {
    let mut calls = Vec::new();
    while next_stop(victim, Go::ToSystemCall)? == Stop::SystemCall {
        let call = call::at_entry(victim)?.filter(|call| can_fail(victim, call));
        calls.push(call.map(|call| {
            let name = call::describe(victim, &call);
            (call, name)
        }));
        next_stop(victim, Go::ToSystemCall)?;
    }
    Ok(calls)
}

/// Closing fails only where a file may have something left to be written.
fn can_fail(victim: Pid, call: &Call) -> bool {
    let is_file =
        |path: PathBuf| path.is_file() && !path.starts_with("/proc") && !path.ends_with("lock");
    call.number != libc::SYS_close || call::file_of(victim, call).is_some_and(is_file)
}

/// A boot id that may not be read is no error: all words then count as those of another boot, and
/// uncommitted records are gone.
fn is_no_error(call: &str, answer: Answer) -> bool {
    call.ends_with("(boot_id)") && answer == Answer::Error(EACCES)
}

fn can_give(call: &Call, answer: Answer) -> bool {
    match answer {
        Answer::Error(errno) => answer::errors_of(call).contains(&errno),
        // Another victim may make another call here.
        Answer::Short(_) => answer::answers_of(call).contains(&answer),
    }
}

/// Through the call at whose entry a victim is; `call` if it is to give this answer.
fn pass_with(victim: Pid, call: Option<&Call>, answer: Answer) -> io::Result<()> {
    match (call, answer) {
        (Some(_), Answer::Short(count)) => call::set_count(victim, count)?,
        (Some(call), Answer::Error(_)) if !answer::is_carried_out(call) => call::skip(victim)?,
        _ => {}
    }
    next_stop(victim, Go::ToSystemCall)?;
    match (call, answer) {
        (Some(_), Answer::Error(errno)) => call::fail(victim, errno),
        (Some(call), Answer::Short(_)) => call::set_count(victim, call.arguments[2]),
        _ => Ok(()),
    }
}

/// Whether the operation was right to answer so.
fn judge(outcome: &Outcome, injection: Injection) -> Result<(), Fault> {
    let errno = match injection.answer {
        _ if outcome.is_done => return Ok(()),
        Answer::Error(EINTR) => return Err("a signal is no error".into()),
        Answer::Short(_) => {
            return Err("a call that does less than it was asked is no error".into());
        }
        Answer::Error(errno) => errno,
    };
    let is_poisoned = outcome.kind == ErrorKind::Poisoned as u64;
    if is_poisoned && !outcome.may_poison {
        return Err("an error of one process poisons the log".into());
    }
    let kind = match errno {
        ENOSPC | EDQUOT => ErrorKind::NoSpace,
        EACCES => ErrorKind::PermissionDenied,
        _ => ErrorKind::Io,
    };
    if outcome.errno != errno || !(is_poisoned || outcome.kind == kind as u64) {
        let (name, found, number) = (error_name(errno), outcome.kind, outcome.errno);
        return Err(format!("{name} became an error of kind {found} with number {number}"));
    }
    Ok(())
}

impl Scene<'_> {
    /// Continues beside a victim whose operation has ended, then continues that one.
    fn go_on_beside(
        &self,
        log: Option<Log>,
        own: Option<Payload>,
        victim: Pid,
        outcome: &Outcome,
    ) -> Result<(), Fault> {
        self.cut_power(own)?;
        let start = trace::now_ns();
        let mut records = later(self.case);
        let gone_on = log.map_or_else(|| self.open(), Ok).and_then(|log| {
            self.append_and_commit(&log, records[0])?;
            self.follow_to(&log, records[0])?;
            Ok(log)
        });
        let log = match gone_on {
            Ok(log) => log,
            Err(_) if outcome.may_poison && self.is_poisoned() => {
                return self.go_on_poisoned(own, victim);
            }
            Err(fault) => return Err(format!("beside it, {fault}")),
        };
        if outcome.must_poison {
            return Err("a sync has failed, and the log goes on".into());
        }
        let elapsed = Duration::from_nanos(trace::now_ns() - start);
        if elapsed > HELD_UP {
            return Err(format!("the survivor was held up for {} ms", elapsed.as_millis()));
        }
        self.cut_power_again(&log)?;
        self.leave_full_disk(&log, own, &records[..1])?;
        self.let_it_go_on(victim)?;
        for record in &records[1..] {
            self.append(&log, *record)?;
        }
        records.insert(1, LAST);
        self.finish_with(log, own, &records)
    }

    /// Whether the log takes nothing more until all processes have closed it.
    fn is_poisoned(&self) -> bool {
        let log = self.case.options().open(self.dir);
        log.is_err_and(|error| error.kind() == ErrorKind::Poisoned)
    }

    /// All processes leave a poisoned log; the next one continues.
    fn go_on_poisoned(&self, own: Option<Payload>, victim: Pid) -> Result<(), Fault> {
        self.page.word(IS_POISONED).store(1, Ordering::SeqCst);
        self.let_it_go_on(victim)?;
        let log = self.open().map_err(|fault| format!("after the poison, {fault}"))?;
        let records = later(self.case);
        self.append_and_commit(&log, records[0])?;
        for record in &records[1..] {
            self.append(&log, *record)?;
        }
        self.finish_with(log, own, &records)
    }

    /// Lets the victim append once more, and leave.
    fn let_it_go_on(&self, victim: Pid) -> Result<(), Fault> {
        let go = || -> io::Result<Stop> {
            loop {
                trace::go(victim, Go::ToMark)?;
                let stop = trace::wait(victim)?;
                if matches!(stop, Stop::Exited(_) | Stop::Killed(_) | Stop::Signal(_)) {
                    return Ok(stop);
                }
            }
        };
        match go().map_err(|error| format!("the victim does not go on: {error}"))? {
            Stop::Exited(0) => Ok(()),
            stop => Err(format!("the victim ended by {stop:?}: {}", self.page.text())),
        }
    }
}
