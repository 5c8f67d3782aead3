//! Where reports go: tables on standard output, files in other forms.

use vellum_bench::Report;
use vellum_command::outcome::Result;
use vellum_doctor::outputs;

use crate::args::BenchOutputArgs;

/// The form of a report.
#[derive(Clone, Copy)]
pub(crate) enum Form {
    Json,
    Markdown,
    Html,
}

/// The files that were asked for, open.
pub(crate) type Outputs<'a> = outputs::Outputs<'a, Form>;

/// Opens the files of a report.
pub(crate) fn open(args: &BenchOutputArgs) -> Result<Outputs<'_>> {
    Outputs::of(&[
        (Form::Json, &args.json),
        (Form::Markdown, &args.markdown),
        (Form::Html, &args.html),
    ])
}

/// Hands out reports: their tables and `summary`, unless another form is printed, and the files.
/// Where there are none, nothing is written.
pub(super) fn deliver(outputs: Outputs<'_>, reports: &[Report], summary: &str) -> Result<()> {
    if reports.is_empty() {
        return Ok(());
    }
    let tables: Vec<String> = reports.iter().map(Report::table).collect();
    outputs.write(&(tables.join("\n") + summary), |form| written(form, reports))
}

/// The reports in a form.
pub(super) fn written(form: Form, reports: &[Report]) -> Result<String> {
    match form {
        Form::Json => Ok(Report::all_to_json(reports)?),
        Form::Markdown => {
            let texts: Vec<String> = reports.iter().map(Report::to_markdown).collect();
            Ok(texts.join("\n"))
        }
        Form::Html => Ok(vellum_bench::html(reports)),
    }
}
