//! How far a long command has come, on standard error if that is a terminal.

use indicatif::{ProgressBar, ProgressStyle};
use vellum_bench::{Event, Progress, Stage};

/// A bar of `len` steps, drawn only when it is told to move: no thread runs behind it.
pub(crate) fn bar(len: u64) -> ProgressBar {
    let style = ProgressStyle::with_template(
        "{bar:30} {percent:>3} %  {elapsed:>4}, {eta} left  {wide_msg}",
    );
    ProgressBar::new(len).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

/// Shows a measurement: a step is a run of one way.
#[derive(Default)]
pub(crate) struct BenchBar {
    bar: Option<ProgressBar>,
}

impl Progress for BenchBar {
    fn event(&mut self, event: &Event<'_>) {
        if let Event::Started { steps } = event {
            self.bar = Some(bar(*steps));
        }
        let Some(bar) = &self.bar else { return };
        match event {
            Event::Step { setting, way, stage } => {
                let stage = match stage {
                    Stage::Trace => "counting syscalls".to_string(),
                    Stage::WarmUp => "warm-up".into(),
                    Stage::Round(number) => format!("round {number}"),
                };
                begin(bar, format!("{setting} {way}, {stage}"));
            }
            Event::Measuring { what } => begin(bar, what.to_string()),
            Event::Omitted { steps } => bar.dec_length(*steps),
            Event::Finished => bar.finish_and_clear(),
            _ => {}
        }
    }
}

/// A step that begins has not been done.
fn begin(bar: &ProgressBar, what: String) {
    bar.set_message(what);
    bar.tick();
    bar.inc(1);
}

impl Drop for BenchBar {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
