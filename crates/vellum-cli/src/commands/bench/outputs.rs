//! Where the result of a run goes: a table on standard output, files in other forms.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use vellum_bench::Report;
use vellum_command::outcome::Result;
use vellum_command::output;

use crate::args::BenchOutputArgs;

/// The files that were asked for, open.
pub(crate) struct Outputs<'a>(Vec<Output<'a>>);

struct Output<'a> {
    form: Form,
    sink: Sink<'a>,
}

/// What a report is written as.
#[derive(Clone, Copy)]
pub(crate) enum Form {
    Json,
    Markdown,
    Html,
}

enum Sink<'a> {
    Stdout,
    File(OutputFile<'a>),
}

/// One that was made for a run, and holds nothing in the end, goes.
struct OutputFile<'a> {
    file: File,
    path: &'a Path,
    is_new: bool,
}

impl Drop for OutputFile<'_> {
    fn drop(&mut self) {
        if self.is_new && self.file.metadata().is_ok_and(|file| file.len() == 0) {
            let _ = fs::remove_file(self.path);
        }
    }
}

impl<'a> Outputs<'a> {
    /// Before the run, so that minutes of it are not in vain; what the files hold stays till then.
    pub(super) fn of(forms: &[(Form, &'a Option<PathBuf>)]) -> Result<Outputs<'a>> {
        let mut outputs = Vec::new();
        for (form, path) in forms {
            if let Some(path) = path {
                outputs.push(Output { form: *form, sink: Sink::open(path)? });
            }
        }
        let outputs = Outputs(outputs);
        if outputs.on_stdout().count() > 1 {
            return Err(
                vellum_bench::Error::invalid("only one form can be printed with `-`").into()
            );
        }
        Ok(outputs)
    }

    /// The same for a report.
    pub(crate) fn open(args: &'a BenchOutputArgs) -> Result<Outputs<'a>> {
        Outputs::of(&[
            (Form::Json, &args.json),
            (Form::Markdown, &args.markdown),
            (Form::Html, &args.html),
        ])
    }

    /// Was no form asked for?
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn on_stdout(&self) -> impl Iterator<Item = &Output<'a>> {
        self.0.iter().filter(|output| matches!(output.sink, Sink::Stdout))
    }

    /// Prints `text`, or what takes its place, then writes the files; `written` tells the content.
    pub(crate) fn write(self, text: &str, written: impl Fn(Form) -> Result<String>) -> Result<()> {
        // What is printed comes first: it is there whatever becomes of the files.
        match self.on_stdout().next() {
            Some(output) => output::print(&written(output.form)?)?,
            None => output::print(text)?,
        }
        for output in &self.0 {
            if let Sink::File(OutputFile { file, path, .. }) = &output.sink {
                overwrite(file, &written(output.form)?)
                    .with_context(|| format!("cannot write {}", path.display()))?;
            }
        }
        Ok(())
    }
}

impl Sink<'_> {
    fn open(path: &Path) -> Result<Sink<'_>> {
        if path == Path::new("-") {
            return Ok(Sink::Stdout);
        }
        let is_new = !path.exists();
        let file = File::options().write(true).create(true).truncate(false).open(path);
        let file = file.with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Sink::File(OutputFile { file, path, is_new }))
    }
}

fn overwrite(mut file: &File, text: &str) -> io::Result<()> {
    file.set_len(0)?;
    file.write_all(text.as_bytes())
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
