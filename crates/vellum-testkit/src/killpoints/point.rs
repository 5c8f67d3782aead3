//! Where a victim is killed, and how it is taken there.
//!
//! A point is named by the system calls that the operation has made and the instructions executed
//! since the last of them. So the way to a point costs a stop per call and a step per instruction
//! of one stretch between calls, and not a step per instruction of the whole operation.

use std::collections::HashSet;
use std::fmt;
use std::io;
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

use super::call;
use crate::trace::{self, FileWatch, Go, Pid, Stop};

/// Bytes that a device writes whole.
pub const SECTOR: u64 = 512;

/// How many points to try.
#[derive(Clone, Copy, Debug)]
pub enum Extent {
    /// Every instruction.
    All,
    /// A sample of all, for about this long.
    Sample(Duration),
    /// This one.
    One(Point),
}

/// A place in the operation under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Point {
    /// So many system calls after its beginning, and so many instructions after the last of them.
    Step {
        /// System calls completed.
        calls: u64,
        /// Instructions executed since.
        steps: u64,
    },
    /// In the middle of a write, of which so many bytes (or pieces of a vectored one) are done.
    Torn {
        /// System calls completed before it.
        calls: u64,
        /// The part of it that is carried out.
        count: u64,
    },
    /// Behind the operation, when it has been acknowledged.
    End,
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Point::Step { calls, steps } => write!(f, "{calls}:{steps}"),
            Point::Torn { calls, count } => write!(f, "torn:{calls}:{count}"),
            Point::End => f.write_str("end"),
        }
    }
}

impl FromStr for Point {
    type Err = String;

    fn from_str(text: &str) -> Result<Point, String> {
        let fault = || format!("{text:?} is no point; it is CALLS:STEPS, torn:CALLS:COUNT or end");
        let number = |text: &str| text.parse::<u64>().map_err(|_| fault());
        match *text.split(':').collect::<Vec<_>>() {
            ["end"] => Ok(Point::End),
            ["torn", calls, count] => {
                Ok(Point::Torn { calls: number(calls)?, count: number(count)? })
            }
            [calls, steps] => Ok(Point::Step { calls: number(calls)?, steps: number(steps)? }),
            _ => Err(fault()),
        }
    }
}

/// Where the victim was when it was killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reached {
    /// At the point.
    There,
    /// At the entry of the next system call, which comes after so many instructions; the call was
    /// not carried out.
    Call {
        /// Instructions since the call before.
        steps: u64,
    },
    /// At the end of the operation.
    End,
}

/// The system calls of an operation: the bytes that each writes, if it writes.
pub type Calls = Vec<Option<u64>>;

/// The instructions of a stretch between two system calls, as one victim executed them.
///
/// Victims are forked from one process, so their code is at the same addresses.
#[derive(Clone, Debug, Default)]
pub struct Stretch {
    /// Address of each instruction; empty where the machine does not tell.
    addresses: Vec<u64>,
    /// For each instruction, the last one not behind it that is executed for the first time there.
    anchors: Vec<usize>,
    /// Steps behind which the control file held something else than before: all kills between two
    /// of them leave the same words.
    pub changes: Vec<u64>,
    /// Instructions, the system call at the end not counted.
    pub len: u64,
    /// Whether its end was reached.
    pub is_whole: bool,
}

impl Stretch {
    fn push(&mut self, address: u64, is_first: bool) {
        let anchor = if is_first { self.anchors.len() } else { *self.anchors.last().unwrap_or(&0) };
        self.addresses.push(address);
        self.anchors.push(anchor);
    }

    /// Whether this step is an iteration in the middle of one repeated instruction (`rep stos` and
    /// the like), and none of those that represent the others.
    pub fn is_inside_repeat(&self, steps: u64) -> bool {
        const KEPT_EVERY: u64 = 64;
        let at = |steps: u64| self.addresses.get(steps as usize);
        let is_repeat = steps > 0
            && at(steps).is_some()
            && at(steps - 1) == at(steps)
            && at(steps) == at(steps + 1);
        is_repeat && !steps.is_multiple_of(KEPT_EVERY)
    }

    /// Instructions, a repeated one counted once.
    pub fn instructions(&self) -> u64 {
        let repeats = self.addresses.windows(2).filter(|pair| pair[0] == pair[1]).count();
        self.len - (repeats as u64).min(self.len)
    }

    /// How far a breakpoint can take a victim towards the instruction with this number.
    fn anchor(&self, steps: u64) -> Option<(u64, u64)> {
        let last = self.anchors.len().checked_sub(1)?;
        let anchor = self.anchors[(steps as usize).min(last)];
        (anchor > 0).then(|| (anchor as u64, self.addresses[anchor]))
    }
}

impl Point {
    /// The stretch of this point, of all those of its operation.
    pub fn stretch_in(self, stretches: &[Stretch]) -> Option<&Stretch> {
        match self {
            Point::Step { calls, .. } => stretches.get(calls as usize),
            _ => None,
        }
    }
}

/// Takes a victim from the beginning of the operation to `point`, which is in `stretch` if that is
/// known.
pub fn go_to(victim: Pid, point: Point, stretch: Option<&Stretch>) -> io::Result<Reached> {
    let (calls, steps) = match point {
        Point::Step { calls, steps } => (calls, steps),
        Point::Torn { calls, .. } => (calls, 0),
        Point::End => (u64::MAX, 0),
    };
    if !pass_calls(victim, calls)? {
        return Ok(Reached::End);
    }
    if let Point::Torn { count, .. } = point {
        let passed = pass_call(victim, Some(count))?;
        return Ok(if passed { Reached::There } else { Reached::End });
    }
    let mut done = 0;
    if let Some((anchor, address)) = stretch.and_then(|stretch| stretch.anchor(steps)) {
        trace::set_breakpoint(victim, Some(address))?;
        match next_stop(victim, Go::ToSystemCall)? {
            Stop::Step => trace::set_breakpoint(victim, None)?,
            // This victim took another way.
            Stop::SystemCall => return Ok(Reached::Call { steps: anchor }),
            _ => return Ok(Reached::End),
        }
        done = anchor;
    }
    for step in done..steps {
        match next_stop(victim, Go::OneStep)? {
            Stop::Step => {}
            Stop::SystemCall => return Ok(Reached::Call { steps: step }),
            _ => return Ok(Reached::End),
        }
    }
    Ok(Reached::There)
}

/// Takes a victim through the stretch behind so many system calls and notes its instructions, up
/// to `steps_max`, and which of them change the file `control`.
pub fn learn(victim: Pid, calls: u64, steps_max: u64, control: &Path) -> io::Result<Stretch> {
    let mut stretch = Stretch { is_whole: true, ..Stretch::default() };
    if !pass_calls(victim, calls)? {
        return Ok(stretch);
    }
    let mut seen = HashSet::new();
    // None while the log is being created.
    let mut watch = FileWatch::new(control).ok();
    loop {
        if let Ok(address) = trace::instruction_address(victim) {
            stretch.push(address, seen.insert(address));
        }
        if next_stop(victim, Go::OneStep)? != Stop::Step {
            return Ok(stretch);
        }
        stretch.len += 1;
        if watch.as_mut().is_some_and(FileWatch::has_changed) {
            stretch.changes.push(stretch.len);
        }
        if stretch.len == steps_max {
            stretch.is_whole = false;
            return Ok(stretch);
        }
    }
}

/// Takes a victim through the whole operation, or its first `calls_max` system calls, and lists
/// them.
pub fn list_calls(victim: Pid, calls_max: usize) -> io::Result<Calls> {
    let mut calls = Vec::new();
    while calls.len() < calls_max && next_stop(victim, Go::ToSystemCall)? == Stop::SystemCall {
        calls.push(call::at_entry(victim)?.and_then(|call| call.write_len()));
        next_stop(victim, Go::ToSystemCall)?;
    }
    Ok(calls)
}

/// Writes cut short: after their first byte or piece, in the middle, before the last.
/// Only of writes of at least `len_min` bytes or pieces.
pub fn torn_points(calls: &Calls, len_min: u64) -> Vec<Point> {
    let mut points = Vec::new();
    for (calls, count) in (0..).zip(calls) {
        let Some(len) = count.filter(|len| *len >= len_min) else { continue };
        // A direct write ends between sectors.
        let mut counts = vec![1, SECTOR, len / 2, len / 2 / SECTOR * SECTOR, len - 1];
        counts.retain(|count| (1..len).contains(count));
        counts.sort_unstable();
        counts.dedup();
        points.extend(counts.into_iter().map(|count| Point::Torn { calls, count }));
    }
    points
}

/// Through so many system calls; false where the operation ends before.
fn pass_calls(victim: Pid, calls: u64) -> io::Result<bool> {
    for _ in 0..calls {
        if !pass_call(victim, None)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Through the next system call, of which `count` shortens the write; false at the end instead.
fn pass_call(victim: Pid, count: Option<u64>) -> io::Result<bool> {
    if next_stop(victim, Go::ToSystemCall)? != Stop::SystemCall {
        return Ok(false);
    }
    // A victim that took another way may be at a shorter write, which must not become longer.
    if let Some(count) = count
        && call::at_entry(victim)?.and_then(|call| call.write_len()).is_some_and(|len| count < len)
    {
        call::set_count(victim, count)?;
    }
    next_stop(victim, Go::ToSystemCall)?;
    Ok(true)
}

/// Continues the victim to a stop that belongs to the operation.
pub(crate) fn next_stop(victim: Pid, go: Go) -> io::Result<Stop> {
    loop {
        trace::go(victim, go)?;
        match trace::wait(victim)? {
            stop @ (Stop::Step | Stop::SystemCall | Stop::Mark) => return Ok(stop),
            Stop::Harmless => {}
            stop => return Err(io::Error::other(format!("the victim met {stop:?}"))),
        }
    }
}

/// The point of the instruction with this number, counted over all stretches.
pub fn pick(stretches: &[Stretch], mut number: u64) -> Point {
    for (calls, stretch) in (0..).zip(stretches) {
        if number < stretch.len {
            let is_new = !stretch.is_inside_repeat(number);
            return Point::Step { calls, steps: if is_new { number } else { 0 } };
        }
        number = number.saturating_sub(stretch.len + 1);
    }
    Point::Step { calls: 0, steps: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_read_as_they_are_shown() {
        for text in ["0:0", "12:345", "torn:3:1", "end"] {
            assert_eq!(text.parse::<Point>().unwrap().to_string(), text);
        }
        assert!("torn:1".parse::<Point>().is_err());
    }
}
