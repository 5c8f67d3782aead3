//! `vellum bench compare`.

use vellum_bench::{Comparison, Verdict};
use vellum_command::outcome::{Outcome, Result};
use vellum_command::output;

use super::reports::{Form, Outputs};
use super::saved;
use crate::args::BenchCompareArgs;

/// Compares two files.
pub(crate) fn run(args: &BenchCompareArgs) -> Result<Outcome> {
    let (before, after) = (saved(&args.before)?, saved(&args.after)?);
    let outputs = Outputs::of(&[(Form::Json, &args.json), (Form::Markdown, &args.markdown)])?;
    let names = [&args.before, &args.after].map(|path| path.display().to_string());
    let comparison = Comparison::of((&names[0], &before), (&names[1], &after));
    outputs.write(&comparison.table(args.changed), |form| match form {
        Form::Json => Ok(comparison.to_json()?),
        _ => Ok(comparison.to_markdown(args.changed)),
    })?;
    let outcome = args.fail_on_slower.map(|percent| judge(&comparison, percent));
    Ok(outcome.unwrap_or(Outcome::Good))
}

/// A user that asked for warnings must learn, too, that nothing could be judged.
fn judge(comparison: &Comparison, percent: f64) -> Outcome {
    let mut worse = comparison.worse_by(percent).peekable();
    if worse.peek().is_none() {
        let is_judged = |verdict| !matches!(verdict, Verdict::TooFewRounds | Verdict::NoRatio);
        if !comparison.figures().any(|change| is_judged(change.verdict)) {
            output::say("no figure could be judged: nothing is in both with enough rounds");
        }
        return Outcome::Good;
    }
    for (row, change) in worse {
        let keys: Vec<&str> = row.keys.iter().map(|key| key.value.as_str()).collect();
        let (suite, table, name) = (&row.suite, &row.table, &change.name);
        let verdict = change.verdict_text();
        output::say(format_args!("{suite}, {table}, {}: {name} {verdict}", keys.join(" ")));
    }
    Outcome::Failed
}
