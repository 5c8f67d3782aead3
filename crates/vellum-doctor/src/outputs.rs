//! Where the result of a run goes: a table on standard output, files in other forms.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use rustix::fs::OFlags;
use vellum_command::files::opened;
use vellum_command::outcome::{BadValue, Result};
use vellum_command::output;

/// The files that were asked for, open, each with the form of its content.
pub struct Outputs<'a, F>(Vec<Output<'a, F>>);

struct Output<'a, F> {
    form: F,
    sink: Sink<'a>,
}

impl<F> std::fmt::Debug for Outputs<'_, F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} outputs", self.0.len())
    }
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

impl<'a, F: Copy> Outputs<'a, F> {
    /// Before the run, so that minutes of it are not in vain; the files keep their content till
    /// then.
    ///
    /// # Errors
    ///
    /// A file can't be opened, or two forms are to be printed.
    pub fn of(forms: &[(F, &'a Option<PathBuf>)]) -> Result<Outputs<'a, F>> {
        let mut outputs = Vec::new();
        for (form, path) in forms {
            if let Some(path) = path {
                outputs.push(Output { form: *form, sink: Sink::open(path)? });
            }
        }
        let outputs = Outputs(outputs);
        if outputs.on_stdout().count() > 1 {
            return Err(BadValue("only one form can be printed with `-`".into()).into());
        }
        Ok(outputs)
    }

    /// Was no form asked for?
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn on_stdout(&self) -> impl Iterator<Item = &Output<'a, F>> {
        self.0.iter().filter(|output| matches!(output.sink, Sink::Stdout))
    }

    /// Prints `text`, or what takes its place, then writes the files; `written` tells the content.
    ///
    /// # Errors
    ///
    /// Standard output or a file can't be written.
    pub fn write(self, text: &str, written: impl Fn(F) -> Result<String>) -> Result<()> {
        // The printed text comes first: it is there even if the files cannot be written.
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
        let file = opened(path, OFlags::WRONLY | OFlags::CREATE);
        let file = file.with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Sink::File(OutputFile { file, path, is_new }))
    }
}

fn overwrite(mut file: &File, text: &str) -> io::Result<()> {
    file.set_len(0)?;
    file.write_all(text.as_bytes())
}
