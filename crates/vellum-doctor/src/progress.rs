//! How far a long command has come, on standard error: a bar if that is a terminal, and otherwise a
//! line each minute.

use std::fmt;
use std::time::Duration;

use indicatif::{HumanDuration, ProgressBar, ProgressState, ProgressStyle};
use vellum_bench::{Event, Progress};
use vellum_command::output;

/// A bar of `len` steps, drawn only when it is told to move: no thread runs behind it.
pub fn bar(len: u64) -> ProgressBar {
    let style =
        ProgressStyle::with_template("{bar:30} {percent:>3} %  {elapsed:>4}{left}  {wide_msg}");
    let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
    let told = |state: &ProgressState, text: &mut dyn fmt::Write| {
        let left = left(state.elapsed(), state.pos(), state.len().unwrap_or(0));
        let left = left.map_or_else(String::new, |left| format!(", {} left", span(left)));
        // Nothing can be done about a bar that cannot be drawn.
        let _ = text.write_str(&left);
    };
    ProgressBar::new(len).with_style(style.with_key("left", told))
}

/// How long the rest takes at the pace of all that is done; `None` before anything is.
fn left(elapsed: Duration, position: u64, len: u64) -> Option<Duration> {
    let rest = len.saturating_sub(position) as f64;
    (position > 0).then(|| elapsed.mul_f64(rest / position as f64))
}

/// Minutes are rounded: two of them may be one and a half, so the first ones are seconds.
fn span(time: Duration) -> String {
    match time.as_secs() {
        seconds @ ..180 => format!("{seconds} s"),
        _ => HumanDuration(time).to_string(),
    }
}

/// Where there is no bar, a line is written no more often than this.
const LINE_PAUSE: Duration = Duration::from_secs(60);

/// Shows a measurement: a step is a run of one way.
#[derive(Debug, Default)]
pub struct BenchBar {
    /// Made when the number of steps is known, unless there is one for several suites.
    bar: Option<ProgressBar>,
    /// The part that it shows of the bar of several suites.
    share: Option<Share>,
    steps: u64,
    begun: u64,
    /// How long the bar had been there at the last line.
    last_line: Duration,
}

/// A suite among others.
#[derive(Debug)]
struct Share {
    name: &'static str,
    /// Where it begins, and how long it is.
    from: u64,
    len: u64,
}

impl Progress for BenchBar {
    fn event(&mut self, event: &Event<'_>) {
        if let Event::Started { steps } = event {
            self.steps = *steps;
            self.bar.get_or_insert_with(|| bar(*steps));
        }
        match event {
            Event::Measuring { what } => self.begin(what),
            Event::Passed { steps } => self.begun = (self.begun + steps).min(self.steps),
            Event::Omitted { steps } => {
                self.steps = self.steps.saturating_sub(*steps);
                if let (Some(bar), None) = (&self.bar, &self.share) {
                    bar.set_length(self.steps);
                }
            }
            Event::Finished => self.finish(),
            _ => {}
        }
    }
}

impl BenchBar {
    /// A step that begins has not been done.
    fn begin(&mut self, what: &str) {
        let Some(bar) = &self.bar else { return };
        match &self.share {
            Some(share) => {
                bar.set_message(format!("{}: {what}", share.name));
                bar.set_position(share.from + share.len * self.begun / self.steps.max(1));
            }
            None => {
                bar.set_message(what.to_string());
                bar.set_position(self.begun);
            }
        }
        bar.tick();
        if let Some(line) = line(bar, &mut self.last_line) {
            output::say(line);
        }
        self.begun = (self.begun + 1).min(self.steps);
    }

    fn finish(&self) {
        match (&self.bar, &self.share) {
            (Some(bar), Some(share)) => bar.set_position(share.from + share.len),
            (Some(bar), None) => bar.finish_and_clear(),
            _ => {}
        }
    }
}

/// The line to write instead of a bar that is hidden, once in a while.
fn line(bar: &ProgressBar, last: &mut Duration) -> Option<String> {
    let elapsed = bar.elapsed();
    if !bar.is_hidden() || elapsed < *last + LINE_PAUSE {
        return None;
    }
    *last = elapsed;
    let percent = 100 * bar.position() / bar.length().unwrap_or(0).max(1);
    let left = left(elapsed, bar.position(), bar.length().unwrap_or(0));
    let left = left.map_or_else(String::new, |left| format!(", about {} left", span(left)));
    Some(format!("{percent} % after {}{left}: {}", span(elapsed), bar.message()))
}

impl Drop for BenchBar {
    fn drop(&mut self) {
        self.finish();
    }
}

/// One bar for several suites. Their steps differ in length, so each has a share as long as it is
/// expected to take, and the time left is about right.
#[derive(Debug)]
pub struct SuitesBar {
    bar: ProgressBar,
    next: std::cell::Cell<u64>,
}

/// A suite that takes seconds has many steps.
const PARTS: u64 = 1000;

impl SuitesBar {
    /// For suites that take so many seconds together.
    pub fn new(seconds: u64) -> SuitesBar {
        SuitesBar { bar: bar(seconds * PARTS), next: std::cell::Cell::new(0) }
    }

    /// The bar to which the next suite tells its progress.
    pub fn suite(&self, name: &'static str, seconds: u64) -> BenchBar {
        let (from, len) = (self.next.get(), seconds * PARTS);
        self.next.set(from + len);
        let share = Some(Share { name, from, len });
        BenchBar { bar: Some(self.bar.clone()), share, ..BenchBar::default() }
    }

    /// Does something that prints while the bar is not to be seen.
    pub fn hidden(&self, print: impl FnOnce()) {
        self.bar.suspend(print);
    }

    /// All suites have run.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_takes_as_long_as_what_is_done() {
        let told = |seconds, position| {
            let bar = ProgressBar::hidden().with_elapsed(Duration::from_secs(seconds));
            bar.set_length(80);
            bar.set_position(position);
            let mut last = Duration::ZERO;
            line(&bar, &mut last).unwrap()
        };
        assert_eq!(told(61, 60), "75 % after 61 s, about 20 s left: ");
        assert_eq!(told(100, 40), "50 % after 100 s, about 100 s left: ");
        assert_eq!(told(600, 60), "75 % after 10 minutes, about 3 minutes left: ");
        assert_eq!(told(61, 0), "0 % after 61 s: ");
    }

    #[test]
    fn a_step_that_is_as_long_as_several_counts_for_them() {
        let bar = ProgressBar::hidden();
        let (share, last_line) = (None, Duration::ZERO);
        let mut shown = BenchBar { bar: Some(bar.clone()), share, steps: 0, begun: 0, last_line };
        shown.event(&Event::Started { steps: 10 });
        shown.event(&Event::Measuring { what: "warm-up" });
        shown.event(&Event::Passed { steps: 5 });
        shown.event(&Event::Measuring { what: "etcd" });
        assert_eq!(bar.position(), 6);
    }

    #[test]
    fn without_a_terminal_a_line_is_written_each_minute() {
        let bar = ProgressBar::hidden().with_elapsed(LINE_PAUSE * 3);
        bar.set_length(4);
        bar.set_position(1);
        bar.set_message("write, 4 threads");
        let mut last = LINE_PAUSE;
        let told = line(&bar, &mut last).unwrap();
        assert_eq!(told, "25 % after 3 minutes, about 9 minutes left: write, 4 threads");
        // The next one is due a minute later.
        assert_eq!(line(&bar, &mut last), None);
    }
}
